"""Follows "Adding a field to a notification" in CONTRIBUTING.md in a copy of the code."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from django.conf import settings

COPIED = ("pushsvc", "channels_app", "subscriptions_app", "notifications_app", "templates")
DECLARATION = """    summary: Annotated[
        str, Field(Type.SHOWN_TEXT, "Summary", "Read out.", most=80)
    ] = ""
"""
IN_PAYLOAD = '        "summary": content.summary,\n'
# For each file: what is added, and before which text.
EDITS = {
    "notifications_app/content/values.py": (DECLARATION, "    icon: Annotated["),
    "notifications_app/content/fields.py": (
        '    "vibration": Field(Type.FLAG, "Vibration", "Vibrates.", sent_as="vibrate"),\n',
        '    "app_badge": ',
    ),
    "notifications_app/models/notification.py": (
        '    summary = models.TextField(blank=True, default="", db_default="")\n',
        "    icon = models.TextField",
    ),
    "notifications_app/delivery/webpush/payload.py": (IN_PAYLOAD, '        "icon": content.icon,'),
    "notifications_app/delivery/fcm/payload.py": (IN_PAYLOAD, '        "icon": content.icon,'),
    "notifications_app/delivery/apns/payload.py": (IN_PAYLOAD, '        "icon": content.icon,'),
}
PROGRAM = """
import json
from uuid import UUID

import django

django.setup()

from django.core.management import call_command
from django.template.loader import render_to_string

from channels_app.audit import SHOWN
from notifications_app.admin.compose.extras import flat
from notifications_app.admin.compose.form import ComposeForm, content_body
from notifications_app.admin.compose.sections import platforms_of, simple_of
from notifications_app.api.serializers import ContentOutput
from notifications_app.delivery.registry import TRANSPORTS
from notifications_app.delivery.types import Message
from notifications_app.models import Notification
from notifications_app.sends.schema import read_send

call_command("makemigrations", "notifications_app", "--name", "summary")
body = {"body": "x", "summary": "Rain", "web": {"vibration": True}, "personalize": True}
content = read_send(body).content
form = ComposeForm(extras=flat(content))
page = render_to_string("console/notifications/writing/options.html", {"simple": simple_of(form)})
web = {each.path: each.label for each in platforms_of(form)[0].inputs}
message = Message(UUID(int=0), content, 0.0)
payloads = {name: each.payload(message, "") for name, each in TRANSPORTS.items()}
print(json.dumps({
    "columns": Notification.values_of(content)["summary"],
    "read": Notification(**Notification.values_of(content)).content.summary,
    "shown": ContentOutput(content).data["summary"],
    "audited": "summary" in SHOWN["notifications_app.notification"],
    "input": 'name="summary" value="Rain"' in page and ">Summary<" in page,
    "label": web["web.vibration"],
    "posted": content_body(ComposeForm(body="x", extras=form.extras), []),
    "payloads": {name: json.loads(each) for name, each in payloads.items()},
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "*.woff2")
        shutil.copytree(settings.BASE_DIR / name, copy / name, ignore=ignored)
    for path, (added, before) in EDITS.items():
        text = (copy / path).read_text(encoding="utf-8")
        assert text.count(before) == 1, path
        (copy / path).write_text(text.replace(before, added + before), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=copy,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "pushsvc.settings", "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    (migration,) = (copy / "notifications_app/migrations").glob("*_summary.py")
    return json.loads(run.stdout.splitlines()[-1]) | {"migration": migration.read_text()}


def test_contributing_names_each_file_of_a_new_field():
    text = (settings.BASE_DIR / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Adding a field")[2].partition("\n## ")[0]
    assert [path for path in EDITS if path.rpartition("/")[2] not in section] == []


def test_a_new_field_is_read_stored_and_shown(found):
    assert "name='summary'" in found["migration"]
    assert (found["columns"], found["read"], found["shown"]) == ("Rain", "Rain", "Rain")
    assert found["audited"]


def test_a_new_field_has_an_input_in_the_console(found):
    assert found["input"]
    assert found["label"] == "Vibration"
    assert found["posted"]["summary"] == "Rain"
    assert found["posted"]["web"] == {"vibration": True}


def test_a_new_field_is_sent_to_each_platform(found):
    payloads = found["payloads"]
    assert payloads["web"]["summary"] == payloads["ios"]["summary"] == "Rain"
    assert payloads["android"]["data"]["summary"] == "Rain"
    assert payloads["web"]["options"] == {"vibrate": True}
