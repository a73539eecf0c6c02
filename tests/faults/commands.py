"""What the suite does through Django: in a process of its own, with the system's environment."""

import json
import sys

import django


def migrate():
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


def make_channels(count):
    """Prints the ids and keys of as many new channels."""
    from channels_app.services import api_key_issue, channel_create

    made = []
    for number in range(int(count)):
        channel = channel_create(name=f"Alice's shop {number}")
        _, text = api_key_issue(channel=channel)
        made.append({"id": str(channel.id), "api_key": text})
    sys.stdout.write(json.dumps(made))


if __name__ == "__main__":
    django.setup()
    {"migrate": migrate, "make_channels": make_channels}[sys.argv[1]](*sys.argv[2:])
