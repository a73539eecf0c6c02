"""Webhooks over the API: create, change, rotate, test, replay, list messages."""

import json
from datetime import timedelta

import pytest
from auditlog.models import LogEntry
from django.utils import timezone

from channels_app import feeds
from channels_app.models import Webhook, WebhookAttempt, WebhookMessage
from channels_app.services import secrets_reencrypt
from channels_app.webhooks import KEPT_FOR, messages_purge, webhook_disable
from pushsvc.common.ids import uuid7_at
from pushsvc.common.store.crypto import decrypt, is_current
from pushsvc.common.timestamps import format_timestamp
from tests.api.support import NOWHERE, errors

URL = "https://backend.shop.com/push?secret=of-the-owner"
GIVEN = {"url": URL, "events": ["notifications.finished", "subscriptions.expired"]}

pytestmark = pytest.mark.django_db


def path(owner, *parts):
    return "/".join([f"/channel/{owner.channel.id}/webhooks", *map(str, parts)])


def make(owner, **values):
    response = owner.call("POST", path(owner), GIVEN | values)
    assert response.status_code == 201, response.content
    return response.json()


def code(response, status):
    assert response.status_code == status, response.content
    return response.json()["code"]


def messages(owner, webhook, query=""):
    return owner.call("GET", path(owner, webhook["webhook_id"], "messages") + query).json()


def test_a_webhook_is_created_with_a_secret_that_is_not_shown_again(alice):
    made = make(alice, description="Orders")

    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert list(made) == [
        *("webhook_id", "url", "events", "description", "format"),
        *("enabled", "disabled_code", "created_at", "health"),
    ]
    assert made["enabled"] is True
    assert made["disabled_code"] is None
    assert alice.call("GET", path(alice, made["webhook_id"])).json() == made
    assert alice.call("GET", path(alice)).json() == [made]
    row = Webhook.objects.get()
    assert secret not in row.secret_encrypted
    assert decrypt(row.secret_encrypted) == secret


def test_neither_address_nor_secret_is_in_the_audit_log(alice):
    made = make(alice)
    alice.call("POST", path(alice, made["webhook_id"], "rotate-secret"))
    alice.call("PUT", path(alice, made["webhook_id"]), GIVEN | {"description": "new"})
    alice.call("DELETE", path(alice, made["webhook_id"]))

    entries = str(list(LogEntry.objects.values_list("changes", "object_repr", "additional_data")))
    assert LogEntry.objects.filter(content_type__model="webhook").count() == 4
    assert "https://backend.shop.com" in entries
    assert "of-the-owner" not in entries
    assert "whsec_" not in entries


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"url": "http://backend.shop.com/"}, ("url", "endpoint_not_allowed")),
        ({"url": "https://backend.shop.com:8443/"}, ("url", "endpoint_not_allowed")),
        ({"url": "https://127.0.0.1/"}, ("url", "endpoint_not_allowed")),
        ({"url": "https://[::1]/"}, ("url", "endpoint_not_allowed")),
        ({"url": "https://backend.internal/"}, ("url", "endpoint_not_allowed")),
        ({"url": "https://me:pass@backend.shop.com/"}, ("url", "endpoint_not_allowed")),
        ({"url": "https://backend.shop.com/#x"}, ("url", "endpoint_not_allowed")),
        # The ASCII form of the host has more characters.
        ({"url": "https://bücher.de/" + "x" * 1980}, ("url", "endpoint_not_allowed")),
        ({"url": ""}, ("url", "blank")),
        ({"url": "https://backend.shop.com/" + "x" * 2000}, ("url", "too_long")),
        ({"events": []}, ("events", "empty")),
        ({"events": ["webhook.test"]}, ("events.0", "not_a_choice")),
        ({"events": ["finished"]}, ("events.0", "not_a_choice")),
        ({"description": "x" * 201}, ("description", "too_long")),
        ({"event": "x"}, ("event", "unknown_field")),
    ],
)
def test_values_that_cannot_work_are_refused(alice, values, expected):
    assert errors(alice.call("POST", path(alice), GIVEN | values)) == [expected]
    assert not Webhook.objects.exists()


def test_the_operators_own_network_is_allowed_by_a_setting(alice, settings):
    settings.WEBHOOK_TRUSTED_ORIGINS = frozenset({"http://backend.internal:8080"})

    assert make(alice, url="http://backend.internal:8080/x")["url"].endswith("/x")


def test_a_channel_has_at_most_ten(alice, bob):
    for _ in range(10):
        make(alice)

    full = alice.call("POST", path(alice), GIVEN)

    assert code(full, 409) == "too_many_webhooks"
    make(bob)


def test_an_update_replaces_the_values_and_keeps_the_secret(alice):
    made = make(alice, description="old")
    before = Webhook.objects.get().secret_encrypted

    answer = alice.call(
        "PUT",
        path(alice, made["webhook_id"]),
        {"url": "https://other.shop.com/", "events": ["notifications.clicked"], "enabled": False},
    ).json()

    assert answer["url"] == "https://other.shop.com/"
    assert answer["events"] == ["notifications.clicked"]
    assert answer["description"] == ""
    assert answer["enabled"] is False
    assert Webhook.objects.get().secret_encrypted == before


def test_a_rotated_secret_keeps_the_old_one_for_a_day(alice):
    made = make(alice)

    new = alice.call("POST", path(alice, made["webhook_id"], "rotate-secret")).json()

    row = Webhook.objects.get()
    assert new["secret"] != made["secret"]
    assert decrypt(row.secret_encrypted) == new["secret"]
    assert decrypt(row.old_secret_encrypted) == made["secret"]
    assert timedelta(hours=23) < row.old_secret_until - timezone.now() <= timedelta(hours=24)


def test_both_secrets_are_encrypted_again_with_a_new_key(alice, settings):
    from cryptography.fernet import Fernet

    made = make(alice)
    alice.call("POST", path(alice, made["webhook_id"], "rotate-secret"))
    settings.CREDENTIAL_KEYS = (Fernet.generate_key().decode(), *settings.CREDENTIAL_KEYS)

    secrets_reencrypt()

    row = Webhook.objects.get()
    assert is_current(row.secret_encrypted)
    assert is_current(row.old_secret_encrypted)


def test_a_test_is_a_message_to_this_webhook_alone(alice):
    made, _ = make(alice), make(alice)

    answer = alice.call("POST", path(alice, made["webhook_id"], "test"))

    assert answer.status_code == 202
    [attempt] = WebhookAttempt.objects.all()
    assert str(attempt.webhook_id) == made["webhook_id"]
    assert answer.json() == {"message_id": f"msg_{attempt.message_id.hex}"}
    body = json.loads(bytes(WebhookMessage.objects.get().body))
    assert body["type"] == "webhook.test"
    assert body["data"] == {
        "channel_id": str(alice.channel.id),
        "webhook_id": made["webhook_id"],
    }
    [shown] = messages(alice, made)
    assert shown["message_id"] == answer.json()["message_id"]
    assert (shown["state"], shown["attempts"]) == ("waiting", 0)
    assert alice.call("GET", path(alice, made["webhook_id"])).json()["health"]["waiting"] == 1


def test_the_health_shows_the_pause_of_a_webhook_whose_calls_fail(alice):
    made = make(alice)
    assert made["health"]["held_until"] is None
    until = timezone.now() + timedelta(minutes=5)
    Webhook.objects.update(failing_since=until, held_until=until)

    shown = alice.call("GET", path(alice, made["webhook_id"])).json()

    assert shown["health"]["held_until"] == format_timestamp(until)


def test_a_rare_fact_goes_to_the_webhooks_that_want_it(alice, bob):
    wants = make(alice, events=["credential.paused", "credential.resumed"])
    make(alice, events=["notifications.finished"])
    make(bob, events=["credential.paused"])

    feeds.message_add(feeds.EventKind.PAUSED, alice.channel.id, platform="ios", code="x")

    [attempt] = WebhookAttempt.objects.all()
    assert str(attempt.webhook_id) == wants["webhook_id"]


def test_nothing_is_stored_for_a_fact_that_no_webhook_wants(alice, bob):
    make(bob, events=["credential.paused", "subscriptions.created"])
    fact = feeds.Fact(feeds.EventKind.CREATED, bob.channel.id)

    feeds.message_add(feeds.EventKind.PAUSED, alice.channel.id, platform="ios", code="x")
    feeds.feed_add(alice.channel.id, [fact])

    assert not WebhookMessage.objects.exists()
    assert not feeds_of(alice)
    feeds.feed_add(bob.channel.id, [fact])
    assert len(feeds_of(bob)) == 1


def feeds_of(owner):
    from channels_app.models import Feed

    return list(Feed.objects.filter(channel_id=owner.channel.id))


def test_a_webhook_that_the_owner_disabled_gets_no_messages(alice):
    made = make(alice, events=["credential.paused"])
    alice.call("POST", path(alice, made["webhook_id"], "test"))
    values = {"url": URL, "events": ["credential.paused"], "enabled": False}
    alice.call("PUT", path(alice, made["webhook_id"]), values)

    feeds.message_add(feeds.EventKind.PAUSED, alice.channel.id, platform="ios", code="x")

    [shown] = messages(alice, made)
    assert (shown["type"], shown["state"]) == ("webhook.test", "failed")
    assert code(alice.call("POST", path(alice, made["webhook_id"], "test")), 409) == (
        "webhook_disabled"
    )
    replay = {"since": "2026-01-01T00:00:00Z"}
    refused = alice.call("POST", path(alice, made["webhook_id"], "replay"), replay)
    assert code(refused, 409) == "webhook_disabled"


def test_a_webhook_that_the_service_disabled_gets_messages_that_can_be_replayed(alice):
    made = make(alice, events=["credential.paused"])
    webhook_disable(Webhook.objects.get().pk, "gone")

    feeds.message_add(feeds.EventKind.PAUSED, alice.channel.id, platform="ios", code="x")

    shown = alice.call("GET", path(alice, made["webhook_id"])).json()
    assert (shown["enabled"], shown["disabled_code"]) == (False, "gone")
    [message] = messages(alice, made)
    assert message["state"] == "failed"
    assert "disabled" in message["answer"]

    enabled = GIVEN | {"events": ["credential.paused"]}
    again = alice.call("PUT", path(alice, made["webhook_id"]), enabled).json()
    assert (again["enabled"], again["disabled_code"]) == (True, None)
    replay = alice.call(
        "POST", path(alice, made["webhook_id"], "replay"), {"since": message["created_at"]}
    )
    assert (replay.status_code, replay.json()) == (202, {"messages": 1})
    assert messages(alice, made, "?state=waiting")[0]["message_id"] == message["message_id"]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ({"since": "0001-01-01T00:00:00Z"}, 1),
        ({"since": "0001-01-01T00:00:00Z", "state": "delivered"}, 1),
        ({"since": "9999-01-01T00:00:00Z"}, 0),
        ({"since": "0001-01-01T00:00:00Z", "until": "2000-01-01T00:00:00Z"}, 0),
    ],
)
def test_a_replay_chooses_by_time_and_state(alice, body, count):
    made = make(alice)
    for state in ("failed", "delivered", "waiting"):
        alice.call("POST", path(alice, made["webhook_id"], "test"))
        WebhookAttempt.objects.filter(state="waiting").update(state=state)

    answer = alice.call("POST", path(alice, made["webhook_id"], "replay"), body)

    assert answer.json() == {"messages": count}
    assert len(messages(alice, made, "?state=waiting")) == 1 + count


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ("since", "required")),
        ({"since": "yesterday"}, ("since", "not_a_timestamp")),
        ({"since": "2026-01-01T00:00:00Z", "state": "waiting"}, ("state", "not_a_choice")),
    ],
)
def test_a_replay_that_cannot_work_is_refused(alice, body, expected):
    made = make(alice)

    refused = alice.call("POST", path(alice, made["webhook_id"], "replay"), body)

    assert errors(refused) == [expected]


def test_messages_are_listed_newest_first_by_page_and_state(alice):
    made = make(alice)
    sent = [
        alice.call("POST", path(alice, made["webhook_id"], "test")).json()["message_id"]
        for _ in range(3)
    ]

    assert [each["message_id"] for each in messages(alice, made)] == sent[::-1]
    assert [each["message_id"] for each in messages(alice, made, "?limit=1&offset=1")] == [sent[1]]
    assert messages(alice, made, "?state=failed") == []
    wrong = alice.call("GET", path(alice, made["webhook_id"], "messages") + "?state=lost")
    assert errors(wrong) == [("state", "not_a_choice")]


def test_messages_are_kept_for_fourteen_days(alice):
    made = make(alice)
    old, new = (alice.call("POST", path(alice, made["webhook_id"], "test")) for _ in range(2))
    del new
    [first] = WebhookMessage.objects.filter(pk=old.json()["message_id"][4:])
    aged = uuid7_at(timezone.now() - KEPT_FOR - timedelta(minutes=1))
    WebhookAttempt.objects.filter(message_id=first.pk).update(message_id=aged)
    WebhookMessage.objects.filter(pk=first.pk).update(id=aged)

    assert messages_purge(100) == 1

    assert WebhookMessage.objects.count() == WebhookAttempt.objects.count() == 1
    assert not WebhookMessage.objects.filter(pk=aged).exists()


def test_webhooks_of_another_channel_are_not_found(alice, bob):
    theirs = make(bob)["webhook_id"]

    for method, *parts in (
        ("GET",),
        ("PUT",),
        ("DELETE",),
        ("POST", "rotate-secret"),
        ("POST", "test"),
        ("POST", "replay"),
        ("GET", "messages"),
    ):
        for webhook_id in (theirs, NOWHERE):
            body = {"since": "2026-01-01T00:00:00Z"} if "replay" in parts else GIVEN
            own = alice.call(method, path(alice, webhook_id, *parts), body)
            assert own.status_code == 404, (method, parts)
            foreign = alice.call(method, path(bob, webhook_id, *parts), body)
            assert foreign.status_code == 404, (method, parts)
    assert Webhook.objects.get().secret_encrypted


def test_a_deleted_webhook_is_gone_with_its_messages(alice):
    made = make(alice)
    alice.call("POST", path(alice, made["webhook_id"], "test"))

    assert alice.call("DELETE", path(alice, made["webhook_id"])).status_code == 204
    assert alice.call("DELETE", path(alice, made["webhook_id"])).status_code == 404
    assert alice.call("GET", path(alice, made["webhook_id"], "messages")).status_code == 404
