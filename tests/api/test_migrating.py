"""The commands of docs/migrating.md, with exports of other services whose people are made up."""

import csv
import gzip
import json
import re
import shlex
import shutil
import subprocess
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from channels_app.models import VapidKey
from subscriptions_app.models import Subscription
from tests.api.devices import ANDROID_TOKEN, IOS_TOKEN
from tests.factories import browser_keys, make_channel
from tests.missing import skip_without

pytestmark = pytest.mark.django_db
KEYS = browser_keys()
ENDPOINT = "https://updates.push.services.mozilla.com/wpush/v2/gAAAAABn"
SEEN = "2026-10-01T10:00:00Z"


@pytest.fixture
def channel(db):
    return make_channel(android_enabled=True, ios_enabled=True)


def commands(section):
    """The commands of a section of the page, each in one line."""
    page = (settings.BASE_DIR / "docs" / "migrating.md").read_text(encoding="utf-8")
    (text,) = re.findall(rf"^### {section}.*?^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return text.replace("\\\n", " ").strip()


def imported(channel, section, folder):
    """Runs what comes after the export. Returns the results, and the subscriptions."""
    before, _, command = commands(section).partition("manage.py import_subscribers ")
    *made, piped = before.split("\n")
    for line in "\n".join(made).split("\njq ")[1:]:
        if shutil.which("jq") is None:
            skip_without("jq")
        subprocess.run(["/bin/sh", "-ec", f"jq {line}"], cwd=folder, check=True)
    if piped:
        shell = f"{piped.rstrip('| ')} > standard-input"
        subprocess.run(["/bin/sh", "-ec", shell], cwd=folder, check=True)
    key = VapidKey.objects.get(channel=channel).public_key
    _, name, *arguments = [
        {"CHANNEL_ID": str(channel.pk), "KEY": key, "-": "standard-input"}.get(each, each)
        for each in shlex.split(command)
    ]
    arguments.remove("--dry-run")
    out = StringIO()
    call_command(
        "import_subscribers", str(channel.pk), str(folder / name), *arguments, "--json", stdout=out
    )
    rows = Subscription.objects.filter(channel=channel).order_by("platform")
    return json.loads(out.getvalue()), list(rows)


def selected(section):
    """The rows of the SELECT of the section, as dictionaries."""
    (statement,) = re.findall(r'--command "([^"]*)"', commands(section))
    with connection.cursor() as cursor:
        cursor.execute(statement)
        names = [each.name for each in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def tags(row):
    return sorted(row.tags.values_list("tag", flat=True))


def test_onesignal(channel, tmp_path):
    columns = (
        "id", "identifier", "session_count", "language", "timezone", "device_type", "tags",
        "last_active", "created_at", "invalid_identifier", "external_user_id", "web_auth",
        "web_p256", "notification_types", "timezone_id",
    )  # fmt: skip
    known = {"language": "de", "timezone_id": "Europe/Rome", "notification_types": "1"}
    rows = [
        {"identifier": IOS_TOKEN, "device_type": "0", "external_user_id": "anna",
         "tags": '{"plan": "pro", "topics": "news,sport", "city": "Rome"}',
         "last_active": "2026-10-01 10:00:00 UTC", **known},
        {"identifier": ENDPOINT, "device_type": "5", "web_auth": KEYS["auth"],
         "web_p256": KEYS["p256dh"], **known},
        {"identifier": "ben@example.com", "device_type": "11", **known},
        {"identifier": ANDROID_TOKEN, "device_type": "1", **known, "notification_types": "-2"},
    ]  # fmt: skip
    table = StringIO()
    writer = csv.DictWriter(table, columns)
    writer.writeheader()
    writer.writerows(rows)
    (tmp_path / "export.csv.gz").write_bytes(gzip.compress(table.getvalue().encode()))

    found, (phone, browser) = imported(channel, "OneSignal", tmp_path)

    assert found["refused_by_code"] == {"not_push": 1, "not_subscribed": 1}
    assert found["attributes_dropped"] == {"city": 1}
    assert (phone.person.external_id, phone.attributes) == ("anna", {"plan": "pro"})
    assert (tags(phone), phone.takeover_until is None) == (["news", "sport"], False)
    assert (browser.address, browser.p256dh) == (ENDPOINT, KEYS["p256dh"])


def test_pinpoint(channel, tmp_path):
    endpoint = {
        "Id": "1", "ChannelType": "GCM", "Address": ANDROID_TOKEN, "EndpointStatus": "ACTIVE",
        "OptOut": "NONE", "EffectiveDate": SEEN, "Demographic": {"Timezone": "Europe/Rome"},
        "Attributes": {"plan": ["pro"]}, "Metrics": {"visits": 3.0}, "User": {"UserId": "anna"},
    }  # fmt: skip
    other = {**endpoint, "Address": IOS_TOKEN, "ChannelType": "APNS_SANDBOX"}
    (tmp_path / "export").mkdir()
    for number, each in enumerate([endpoint, other]):
        file = tmp_path / "export" / f"part-{number}.gz"
        file.write_bytes(gzip.compress(f"{json.dumps(each)}\n".encode()))

    found, (phone,) = imported(channel, "Amazon Pinpoint", tmp_path)

    assert found["refused_by_code"] == {"wrong_environment": 1}
    assert (phone.person.external_id, phone.timezone) == ("anna", "Europe/Rome")
    assert phone.attributes == {"plan": "pro", "visits": 3.0}


def test_firebase(channel, tmp_path):
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE tokens ON COMMIT DROP AS SELECT 'android' AS platform,"
            f" '{ANDROID_TOKEN}' AS token, 'anna' AS user_id, 'pro' AS plan, '{SEEN}'::timestamptz"
            " AS updated_at"
        )
    rows = selected("Firebase")
    with (tmp_path / "tokens.csv").open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)

    _, (phone,) = imported(channel, "Firebase", tmp_path)

    assert (phone.person.external_id, phone.attributes) == ("anna", {"plan": "pro"})
    assert phone.registered_at.month == 10


def test_pushpad(channel, tmp_path):
    listed = {
        "id": 1, "project_id": 2, "endpoint": ENDPOINT, **KEYS, "uid": "anna", "tags": ["news"],
        "last_click_at": None, "created_at": SEEN,
    }  # fmt: skip
    (tmp_path / "page.json").write_text(json.dumps([listed]))

    _, (browser,) = imported(channel, "Pushpad", tmp_path)

    assert (browser.person.external_id, tags(browser)) == ("anna", ["news"])
    assert (browser.auth, browser.created_at.month) == (KEYS["auth"], 10)


@pytest.mark.parametrize("kind", ["text", "jsonb"])
def test_libraries(channel, tmp_path, kind):
    subscription = json.dumps({"endpoint": ENDPOINT, "expirationTime": None, "keys": KEYS})
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE push_subscriptions ON COMMIT DROP AS SELECT"
            f" '{subscription}'::{kind} AS subscription, 'anna' AS user_id,"
            f" '{SEEN}'::timestamptz AS created_at"
        )
    rows = [row["json_build_object"] for row in selected("Web-push libraries")]
    file = tmp_path / "subscriptions.ndjson"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in rows))

    _, (browser,) = imported(channel, "Web-push libraries", tmp_path)

    assert (browser.person.external_id, browser.address) == ("anna", ENDPOINT)
    assert (browser.p256dh, browser.created_at.month) == (KEYS["p256dh"], 10)


def test_airship(channel, tmp_path):
    phone = {
        "channel_id": "9c36e8c7-5a73-47c0-9716-99fd3d4197d5", "device_type": "android",
        "installed": True, "opt_in": True, "push_address": ANDROID_TOKEN, "named_user_id": "anna",
        "tags": ["news"], "created": "2026-09-01T10:00:00", "last_registration": SEEN[:-1],
    }  # fmt: skip
    other = {**phone, "push_address": f"{ANDROID_TOKEN}2", "opt_in": False}
    browser = {**phone, "device_type": "web", "push_address": None}
    page = {"ok": True, "channels": [phone, other, browser], "next_page": None}
    (tmp_path / "page.json").write_text(json.dumps(page))

    _, (row,) = imported(channel, "Airship", tmp_path)

    assert (row.person.external_id, tags(row), row.address) == ("anna", ["news"], ANDROID_TOKEN)
    assert (row.created_at.month, row.registered_at.month) == (9, 10)
