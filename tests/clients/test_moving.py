"""The commands of docs/migrating.md that move a channel to another installation, as written."""

import os
import re
import shutil
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import call_command

from subscriptions_app.categories.services import category_archive
from subscriptions_app.models import Category, Person, Segment
from tests.api.support import owner_of
from tests.api.test_export_channel import fill, ready_channel, stored
from tests.clients import generators
from tests.factories import make_category, make_channel, make_segment, make_template
from tests.missing import skip_without
from tests.pipeline.processes import environment, running_web


def commands():
    page = (generators.CHECKOUT / "docs" / "migrating.md").read_text(encoding="utf-8")
    section = re.split(r"^### To another installation of pushsvc$", page, flags=re.MULTILINE)[1]
    return re.search(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1]


def run(folder, **variables):
    """What the commands print."""
    checkout = generators.CHECKOUT
    command = folder / "manage.py"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {checkout}/manage.py "$@"\n')
    command.chmod(0o755)
    path = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        ["/bin/sh", "-c", commands()],
        cwd=folder,
        env={**environment(), **path, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.django_db(transaction=True)
def test_a_channel_moves_with_opt_outs_and_choices(tmp_path):
    for program in ("jq", "curl"):
        if shutil.which(program) is None:
            skip_without(program)
    old = owner_of(ready_channel())
    fill(old)
    make_category(old.channel, "old", default=True)
    make_segment(old.channel, {"tag": "news"})
    make_template(old.channel, "Shipped", {"title": 'It\'s \\ "here"', "body": "a\nb\tc\u2028d"})
    out = Person.objects.create(
        channel=old.channel, external_id='x "y" \\z', choices={"old": False, "offers": True}
    )
    category_archive(channel_id=old.channel.pk, key="old")
    settings = {
        "timezone": "Europe/Rome",
        "rate_per_minute": 600,
        "category_required": False,
        "quiet_hours": {"from": "22:00", "to": "08:00"},
        "inbox_days": 7,
        "caps": [{"limit": 3, "hours": 24}],
    }
    where = "/channel/{}/delivery-settings"
    assert old.call("PUT", where.format(old.channel.pk), settings).json() == settings
    call_command(
        "export_channel", str(old.channel.pk), str(tmp_path / "export"), "--with-keys",
        stdout=StringIO(),
    )  # fmt: skip
    new = owner_of(make_channel("New", android_enabled=True, ios_enabled=True))

    with running_web(tmp_path / "web.log") as address:
        given = {"NEW": address, "CHANNEL": str(new.channel.pk), "KEY": new.key}
        printed = run(tmp_path, **given)
        assert '"code"' not in printed
        moved = stored(new.channel)
        assert moved == stored(old.channel)
        run(tmp_path, **given)

    assert stored(new.channel) == moved
    categories = Category.objects.filter(channel=new.channel).order_by("key")
    assert [(each.key, each.archived_at is None) for each in categories] == [
        ("offers", True),
        ("old", False),
    ]
    assert Person.objects.get(channel=new.channel, external_id=out.external_id).choices == (
        out.choices
    )
    assert Segment.objects.get(channel=new.channel).rule == {"tag": "news"}
    assert new.call("GET", where.format(new.channel.pk)).json() == settings
