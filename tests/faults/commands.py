"""What the suite does through Django: in a separate process, with the system's environment."""

import json
import sys

import django


def migrate():
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


def make_channels(count):
    """Creates so many channels and prints their ids and keys."""
    from tests.factories import make_channel, make_key

    channels = [make_channel(f"Alice's shop {number}") for number in range(int(count))]
    made = [{"id": str(channel.id), "api_key": make_key(channel)} for channel in channels]
    sys.stdout.write(json.dumps(made))


if __name__ == "__main__":
    django.setup()
    command, *arguments = sys.argv[1:]
    if command == "migrate":
        migrate()
    else:
        make_channels(*arguments)
