"""A web process keeps the rows of keys and channels for a second, and no longer."""

import json
from dataclasses import replace
from uuid import uuid4

import pytest

from channels_app import http, keys
from channels_app.models import Channel
from channels_app.selectors import api_key_find, channel_get
from channels_app.services import api_key_revoke
from pushsvc import settings as production
from pushsvc.common.store import recent
from pushsvc.common.store.recent import Recent
from tests.api.credentials import GOOGLE
from tests.api.devices import ANDROID_TOKEN
from tests.api.support import code
from tests.factories import browser, phone

KEPT = 1.0  # pushsvc/settings.py


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(settings, monkeypatch):
    """Requests keep rows as in production, by this clock."""
    settings.ROWS_KEPT_SECONDS = KEPT
    clock = Clock()
    monkeypatch.setattr(http, "recent_api_key", Recent(api_key_find, clock))
    monkeypatch.setattr(http, "recent_channel", Recent(channel_get, clock))
    return clock


def send(owner):
    return owner.call("POST", "/send-notification", {"body": "Fresh bread"})


def test_a_revoked_key_is_refused_after_a_second(db, alice, clock):
    assert send(alice).status_code == 202
    clock.now += KEPT / 2
    assert api_key_revoke(api_key=api_key_find(alice.key[4:12]).api_key)

    clock.now += KEPT / 2

    assert code(send(alice), 401) == "revoked_key"


def test_using_a_key_does_not_keep_it_longer(db, alice, clock):
    assert send(alice).status_code == 202
    assert api_key_revoke(api_key=api_key_find(alice.key[4:12]).api_key)
    for _ in range(3):
        clock.now += KEPT / 4
        send(alice)

    clock.now += KEPT / 4

    assert code(send(alice), 401) == "revoked_key"


def test_a_kept_key_is_compared_with_every_text(db, alice, clock):
    assert send(alice).status_code == 202
    start = alice.key[:13] + "x" * 32
    forged = replace(alice, key=start + keys._checksum(start))

    assert code(send(forged), 401) == "invalid_key"


def test_a_channel_that_refuses_a_platform_does_so_after_a_second(db, alice, clock):
    def subscribe(number):
        endpoint = f"https://updates.push.services.mozilla.com/wpush/v2/{number}"
        return alice.subscribe(browser(endpoint))

    assert subscribe(1).status_code == 201
    Channel.objects.update(web_enabled=False)

    clock.now += KEPT

    assert code(subscribe(2), 400) == "platform_not_enabled"


def test_a_platform_that_another_process_enabled_is_taken_at_once(db, alice, clock):
    assert send(alice).status_code == 202
    assert alice.subscribe(browser()).status_code == 201
    to_android = {"body": "Fresh bread", "target_platforms": ["android"]}
    assert code(alice.send(to_android), 400) == "platform_not_enabled"

    Channel.objects.update(android_enabled=True)

    assert alice.send(to_android).status_code == 202
    assert alice.subscribe(phone("android", ANDROID_TOKEN)).status_code == 201


def test_within_a_second_a_send_is_one_statement(db, alice, clock, django_assert_num_queries):
    send(alice)
    with django_assert_num_queries(1):
        assert send(alice).status_code == 202


@pytest.mark.django_db(transaction=True)
def test_a_client_that_stores_credentials_sends_by_them_at_once(alice, settings):
    settings.ROWS_KEPT_SECONDS = 3_600
    entries = {"providers_config": {"fcm_service_account": json.dumps(GOOGLE)}}
    path = f"/channel/{alice.channel.id}/providers"
    assert alice.call("PUT", path, entries).status_code == 200

    accepted = alice.send({"body": "Fresh bread", "target_platforms": ["android"]})

    assert accepted.status_code == 202


@pytest.mark.django_db(transaction=True)
def test_a_key_that_this_process_revoked_is_refused_at_once(alice, settings):
    settings.ROWS_KEPT_SECONDS = 3_600
    assert send(alice).status_code == 202

    assert api_key_revoke(api_key=api_key_find(alice.key[4:12]).api_key)

    assert code(send(alice), 401) == "revoked_key"


@pytest.fixture
def read(settings):
    settings.ROWS_KEPT_SECONDS = KEPT
    asked = []

    def read(key):
        asked.append(key)
        return None if key == "missing" else key.upper()

    read.asked = asked
    return read


def test_what_is_missing_is_asked_for_again(read):
    find = Recent(read, Clock())

    assert [find("missing"), find("missing"), find("a"), find("a")] == [None, None, "A", "A"]
    assert read.asked == ["missing", "missing", "a"]


def test_the_second_begins_before_the_row_is_read(settings):
    settings.ROWS_KEPT_SECONDS = KEPT
    clock, rows = Clock(), ["old", "new"]

    def slow(_key):
        clock.now += KEPT
        return rows.pop(0)

    find = Recent(slow, clock)

    assert [find("a"), find("a")] == ["old", "new"]


def test_a_row_that_changed_while_it_was_read_is_not_kept(settings):
    settings.ROWS_KEPT_SECONDS = KEPT
    rows = ["old", "new"]

    def read(_key):
        row = rows.pop(0)
        if row == "old":
            find.forget()  # another thread has changed it
        return row

    find = Recent(read, Clock())

    assert [find("a"), find("a")] == ["old", "new"]


def test_no_more_rows_are_kept_than_the_bound(read, monkeypatch):
    monkeypatch.setattr(recent, "_MOST", 3)
    find = Recent(read, Clock())
    for key in "abcdefgh":
        find(key)

    assert len(find._kept) <= 3


def test_an_error_is_not_kept(db, clock, alice):
    unknown = replace(alice, channel=Channel(id=uuid4()))
    assert code(unknown.subscribe(browser()), 404) == "channel_not_found"

    Channel.objects.create(
        id=unknown.channel.id,
        account=alice.channel.account,
        name="New",
        vapid_subject="mailto:a@b.c",
    )

    assert http.recent_channel(unknown.channel.id).name == "New"


def test_production_keeps_them_for_a_second():
    assert production.ROWS_KEPT_SECONDS == KEPT
