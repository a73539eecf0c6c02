"""`manage.py export_channel`, and what another installation makes of its files."""

import json
import resource
import stat
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from auditlog.models import LogEntry
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels_app.selectors import current_vapid_key, vapid_private_keys
from channels_app.services import vapid_key_rotate
from channels_app.vapid_keys import vapid_key_store
from channels_app.webhooks import webhook_create
from pushsvc.common.http.exports import NO_ID
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.categories.consent import refusing
from subscriptions_app.categories.services import MAX_CATEGORIES, category_archive
from subscriptions_app.devices.exporting import subscription_texts, subscriptions_page
from subscriptions_app.importing.fields import row_of
from subscriptions_app.importing.services import subscriptions_import
from subscriptions_app.models import Subscription
from subscriptions_app.tags.selectors import device_tags
from tests.api.devices import ANDROID_TOKEN, HERE, IOS_TOKEN
from tests.api.support import owner_of
from tests.factories import (
    add_crowd,
    browser,
    browser_keys,
    make_category,
    make_channel,
    make_person,
    make_schedule,
    make_segment,
    make_template,
    phone,
)
from tests.pipeline.support import plan

pytestmark = pytest.mark.django_db
FAR = "2999-01-01T00:00:00Z"
STORED = (
    "platform",
    "p256dh",
    "auth",
    "attributes",
    "language",
    "timezone",
    "expired_code",
)
TIMES_STORED = ("created_at", "registered_at", "expired_at")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = st.text("aäß漢 ;=\"'\u2028", max_size=8).map(lambda text: f"x{text}x")
TIMES = st.integers(0, 10**11).map(
    lambda ms: format_timestamp(datetime(2020, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms))
)
KEYS = browser_keys()


def rows(public_keys):
    """Lines of an export."""
    auths = st.sampled_from([None, KEYS["auth"]])
    addresses = st.one_of(
        st.fixed_dictionaries(
            {
                "platform": st.just("web"),
                "endpoint": st.integers(0, 99).map(lambda number: f"{HERE}{number}"),
                "keys": st.just(KEYS),
                "vapid_public_key": st.sampled_from(public_keys),
            }
        ),
        *(
            st.fixed_dictionaries(
                {"platform": st.just(platform), "provider_token": tokens, "auth": auths}
            )
            for platform, tokens in [
                ("android", st.integers(0, 99).map(lambda number: f"{ANDROID_TOKEN}{number}")),
                ("ios", st.integers(10, 99).map(lambda number: f"{IOS_TOKEN[:-2]}{number}")),
            ]
        ),
    )
    expiries = st.one_of(
        st.just({"active": True, "expired_at": None, "expired_code": None}),
        st.fixed_dictionaries(
            {
                "active": st.just(False),
                "expired_at": TIMES,
                "expired_code": st.sampled_from(["unsubscribed", "endpoint_gone", "opted_out"]),
            }
        ),
    )
    facts = st.fixed_dictionaries(
        {
            "external_id": st.sampled_from([None, "user-1", "user-2"]),
            "language": st.sampled_from([None, "de", "pt-BR", "zh-Hant-TW"]),
            "timezone": st.sampled_from([None, "Europe/Berlin", "Asia/Kathmandu"]),
            "attributes": st.dictionaries(
                WORDS, WORDS | st.integers(-9, 10**15) | st.floats(-1e9, 1e9), max_size=3
            ),
            "tags": st.sets(st.sampled_from(["a", "B:c", "d.e"])).map(sorted),
            "choices": st.sampled_from([{}, {"offers": True}, {"offers": False}]),
            "created_at": TIMES,
            "last_seen_at": TIMES,
        }
    )
    return st.builds(
        lambda *parts: {n: v for part in parts for n, v in part.items()}, facts, expiries, addresses
    )


@pytest.fixture
def alice(db):
    return owner_of(ready_channel())


def export(channel, directory, *arguments):
    """The rows of each file."""
    call_command("export_channel", str(channel.pk), str(directory), *arguments, stdout=StringIO())
    return {
        file.stem: [json.loads(line) for line in file.read_text().splitlines()]
        for file in directory.iterdir()
    }


def import_(channel, file):
    out = StringIO()
    given = ["--format=pushsvc_ndjson", "--json"]
    call_command("import_subscribers", str(channel.pk), str(file), *given, stdout=out)
    return json.loads(out.getvalue())


def fill(owner):
    """Devices of every kind."""
    facts = {"language": "de", "timezone": "Europe/Berlin", "tags": ["news", "b"]}
    owner.subscribe(browser(HERE, attributes={"plan": "gold", "age": 7}, **facts))
    vapid_key_rotate(channel=owner.channel)
    owner.subscribe(browser(f"{HERE}2"))
    owner.subscribe(phone("android", ANDROID_TOKEN, tags=["a"]))
    owner.subscribe(phone("ios", IOS_TOKEN, auth=browser()["keys"]["auth"]))
    owner.subscribe(browser(f"{HERE}3", attributes={"x": "1"}))
    ended = Subscription.objects.filter(address=f"{HERE}3")
    ended.update(expired_at=Now(), expired_code="endpoint_gone")
    link = {"subscription_id": str(Subscription.objects.first().pk), "external_id": "user-42"}
    owner.call("POST", f"/channel/{owner.channel.pk}/people/devices", {"links": [link]})
    person = f"/channel/{owner.channel.pk}/person?external_id=user-42"
    owner.call("PATCH", person, {"choices": {"offers": False}})


def test_it_writes_what_the_channel_has(alice, tmp_path):
    alice.subscribe(browser(HERE))
    make_person(alice.channel, "without-choices")
    for name, change in (("user-7", {"opted_out": True}), ("ä", {"choices": {"offers": True}})):
        make_person(alice.channel, name)
        alice.call("PATCH", f"/channel/{alice.channel.pk}/person?external_id={name}", change)
    segment = make_segment(alice.channel, {"tag": "news"})
    template = make_template(alice.channel, "Shipped", {"body": "It left."})
    make_schedule(alice.channel)
    later = {"body": "Later", "image": "https://a.example/b.png", "scheduled_at": FAR}
    targets = [{"external_id": "user-42"}]
    waiting = alice.send(later | {"targets": targets, "cap": "ignore"}).json()["notification_id"]
    tested = {"variants": [{"name": "a"}, {"name": "b"}], "test": {"share": 99, "minutes": 15}}
    sent = alice.send({"body": "Hello"}).json()["notification_id"]
    alice.send({"body": "Later", "scheduled_at": FAR} | tested)
    plan()
    fill(owner_of(ready_channel()))

    found = export(alice.channel, tmp_path / "out")

    assert [row["platform"] for row in found["subscriptions"]] == ["web"]
    assert [row["segment_id"] for row in found["segments"]] == [str(segment.pk)]
    assert found["segments"][0]["rule"] == {"tag": "news"}
    assert [row["template_id"] for row in found["templates"]] == [str(template.pk)]
    assert found["templates"][0]["content"] == {"body": "It left."}
    (repeated,) = found["schedules"]
    assert repeated["notification"]["body"] == "Digest"
    assert repeated["recurrence"]["rule"] == "FREQ=WEEKLY;BYDAY=MO"
    assert repeated["enabled"] is True
    assert [row["key"] for row in found["categories"]] == ["offers"]
    assert sorted(found["people"], key=lambda row: row["external_id"]) == [
        {"external_id": "user-7", "choices": {}, "opted_out": True},
        {"external_id": "ä", "choices": {"offers": True}, "opted_out": False},
    ]
    first, second, third = found["notifications"]
    assert (first["notification_id"], first["status"]) == (waiting, "pending")
    assert first["content"] == {"body": "Later", "image": "https://a.example/b.png"}
    assert first["targets"] == [{"external_id": "user-42", "subscription_id": None, "vars": None}]
    assert first["scheduled_at"] == "2999-01-01T00:00:00.000Z"
    assert first["cap"] == "ignore"
    assert (second["notification_id"], second["targets"]) == (sent, [])
    assert (third["test"]["share"], third["decision"], third["cap"]) == (99, None, "respect")
    assert [row["notification_id"] for row in found["deliveries"]] == [sent]
    (about,) = found["channel"]
    assert about["rows"]["notifications"] == 3
    assert about["channel_id"] == str(alice.channel.pk)


def test_keys_are_written_only_on_request_and_only_for_this_user(alice, tmp_path):
    alice.subscribe(browser(HERE))
    device, key = Subscription.objects.get(), current_vapid_key(alice.channel)
    private = vapid_private_keys([key.pk])[key.pk].private_key
    secrets = [device.address, device.auth, private]

    export(alice.channel, tmp_path / "without")
    found = export(alice.channel, tmp_path / "with", "--with-keys")

    written = "".join(file.read_text() for file in (tmp_path / "without").iterdir())
    assert not any(each in written for each in secrets)
    assert found["subscriptions"][0]["endpoint"] == device.address
    assert found["vapid_keys"] == [
        {"public_key": key.public_key, "private_key": private, "current": True}
    ]
    for path in [tmp_path / "with", *(tmp_path / "with").iterdir()]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077
    notes = list(LogEntry.objects.values_list("additional_data__note", flat=True))
    assert "The channel was exported by a command, with addresses and keys." in notes
    assert not any(each in str(list(LogEntry.objects.values())) for each in secrets)


def test_a_directory_that_exists_is_not_written_to(alice, tmp_path):
    with pytest.raises(CommandError, match="File exists"):
        export(alice.channel, tmp_path)


@contextmanager
def largest_file(size):
    """As on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_export_that_ended_early_shows_it_and_can_go_on(alice, tmp_path):
    add_crowd(alice.channel, 200)
    make_segment(alice.channel, {"tag": "news"})
    early = tmp_path / "early"
    with largest_file(40_000), pytest.raises(CommandError, match=r"File too large.*--resume"):
        export(alice.channel, early)
    assert sorted(file.name for file in early.iterdir()) == [
        "incomplete.json",
        "subscriptions.ndjson.part",
    ]
    other = make_channel("Bob's")
    for channel, arguments in ((other, ()), (alice.channel, ("--with-keys",))):
        with pytest.raises(CommandError, match="another channel, or with other options"):
            export(channel, early, "--resume", *arguments)

    found = export(alice.channel, early, "--resume")

    whole = export(alice.channel, tmp_path / "whole")
    for files in (found, whole):
        files["channel"][0].pop("exported_at")
    assert found == whole
    assert {file.suffix for file in early.iterdir()} == {".ndjson", ".json"}
    with pytest.raises(CommandError, match="is complete"):
        export(alice.channel, early, "--resume")
    with pytest.raises(CommandError, match="no export"):
        export(alice.channel, tmp_path, "--resume")


def test_files_that_were_complete_are_kept(alice, tmp_path, settings):
    """A key that cannot be read is found in the last file."""
    alice.subscribe(browser(HERE))
    right = settings.CREDENTIAL_KEYS
    settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(CommandError, match="--resume"):
        export(alice.channel, tmp_path / "out", "--with-keys")
    settings.CREDENTIAL_KEYS = right
    alice.subscribe(browser(f"{HERE}2"))
    found = export(alice.channel, tmp_path / "out", "--with-keys", "--resume")
    assert len(found["subscriptions"]) == found["channel"][0]["rows"]["subscriptions"] == 1
    assert len(found["vapid_keys"]) == 1


def test_settings_and_webhooks_are_written(alice, tmp_path):
    settings = {
        "timezone": "Europe/Berlin",
        "quiet_hours": {"from": "22:00", "to": "08:00"},
        "inbox_days": 7,
        "caps": [{"limit": 3, "hours": 24}],
    }
    alice.call("PUT", f"/channel/{alice.channel.pk}/delivery-settings", settings)
    webhook_create(
        channel=alice.channel,
        url="https://backend.shop.com/secret",
        events=["notifications.finished"],
    )
    without = export(alice.channel, tmp_path / "without")
    found = export(alice.channel, tmp_path / "with", "--with-keys")
    assert "webhooks" not in without  # their addresses may contain secrets
    assert [row["url"] for row in found["webhooks"]] == ["https://backend.shop.com/secret"]
    assert "secret_encrypted" not in found["webhooks"][0]
    (about,) = found["channel"]
    assert {name: about[name] for name in settings} == settings
    assert about["platforms"] == ["web", "android", "ios"]


def test_an_import_of_an_export_gives_the_same_subscribers(alice, tmp_path):
    fill(alice)
    assert_moved(alice.channel, tmp_path)
    assert Subscription.objects.count() == 2 * 5


def test_choices_about_archived_categories_move_too(alice, tmp_path):
    """They count again when the category is restored."""
    fill(alice)
    many = {f"old-{number}": False for number in range(MAX_CATEGORIES + 1)}
    Subscription.objects.filter(address=f"{HERE}2").update(choices={"offers": False, **many})
    for key in many:
        make_category(alice.channel, key)
        category_archive(channel_id=alice.channel.pk, key=key)
    category_archive(channel_id=alice.channel.pk, key="offers")
    other = make_channel(android_enabled=True, ios_enabled=True)
    for key in ("offers", *many):
        make_category(other, key)
        category_archive(channel_id=other.pk, key=key)

    assert_moved(alice.channel, tmp_path, other)
    make_category(other, "offers", default=True)

    rows = Subscription.objects.filter(channel=other, choices__offers=False)
    ids = list(rows.values_list("pk", flat=True))
    assert len(ids) == 2
    assert refusing(other.pk, "offers", ids) == set(ids)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_export_after_an_import_is_what_was_imported(alice, data):
    with transaction.atomic():
        keys = [current_vapid_key(alice.channel), vapid_key_rotate(channel=alice.channel)]
        lines = rows([key.public_key for key in keys])
        given = data.draw(st.lists(lines, max_size=6, unique_by=address_of))

        assert import_rows(alice.channel, given) == ["created"] * len(given)
        exported = export_rows(alice.channel)
        assert exported == sorted(given, key=address_of)
        assert import_rows(alice.channel, exported) == ["unchanged"] * len(given)
        transaction.set_rollback(True)


def address_of(row):
    return row.get("endpoint") or row["provider_token"]


def import_rows(channel, given):
    read = [row_of(row, NOW) for row in given]
    results = subscriptions_import(channel=channel, rows=read)
    return [each.code or each.outcome for each in results]


def export_rows(channel):
    """In the order of their addresses, without ids, which another installation makes anew."""
    page = subscriptions_page(channel.pk, after=NO_ID, limit=100)
    text = "".join(subscription_texts(page, with_address=True))
    found = sorted([json.loads(line) for line in text.split("\n")[:-1]], key=address_of)
    for row in found:
        del row["subscription_id"]
    return found


def assert_moved(channel, directory, other=None):
    """An export of the channel and an import into another one make the same rows."""
    exported = export(channel, directory / "export", "--with-keys")
    other = other or ready_channel()
    for key in exported["vapid_keys"]:
        vapid_key_store(channel=other, private_key=key["private_key"])
    counts = import_(other, directory / "export" / "subscriptions.ndjson")
    assert counts["refused_by_code"] == {}
    assert stored(other) == stored(channel)


def ready_channel():
    channel = make_channel(android_enabled=True, ios_enabled=True)
    make_category(channel, "offers")
    return channel


def stored(channel):
    """By address, everything that is stored of the channel's subscribers. An export has times in
    milliseconds."""
    rows = Subscription.objects.filter(channel=channel).select_related("person", "vapid_key")
    tags = device_tags([row.pk for row in rows])
    return {
        row.address: {name: getattr(row, name) for name in STORED}
        | {
            name: at and format_timestamp(at)
            for name in TIMES_STORED
            for at in [getattr(row, name)]
        }
        | {
            "vapid_key": row.vapid_key and row.vapid_key.public_key,
            "tags": tags.get(row.pk, []),
            "person": row.person and row.person.external_id,
            "choices": row.choices | (row.person.choices if row.person else {}),
        }
        for row in rows
    }
