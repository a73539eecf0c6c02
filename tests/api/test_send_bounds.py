"""How much a channel's sends may store: in an hour, and while they wait."""

import pytest

from notifications_app.models import Notification, Target
from notifications_app.sends import bounds
from pushsvc.common.store.redis_client import redis_client
from tests.api.support import accepted, asked_of_redis, code
from tests.api.templates import created

pytestmark = pytest.mark.django_db
BODY = {"body": "Your parcel is here."}
LATER = "2031-01-02T03:04:05.000Z"
SOON = {"scheduled_at": LATER}
MANY = [f"user-{number}" for number in range(1_000)]
PRO = {"attribute": "plan", "operator": "in", "value": ["p" * 250 + str(n) for n in range(60)]}
TAGS = [
    "de",
    "fr",
    "es",
    "it",
    "pl",
    "nl",
    "sv",
    "da",
    "fi",
    "nb",
    "cs",
    "sk",
    "hu",
    "ro",
    "bg",
    "el",
]
LANGUAGES = {tag: {"title": "ü" * 100, "body": "ß" * 255} for tag in TAGS}
LONG = {"any": [PRO | {"attribute": f"a{number}"} for number in range(3)]}  # about 47 KB


@pytest.fixture(autouse=True)
def _fresh_limits():
    redis_client().flushdb()


@pytest.fixture
def two_pending(settings):
    settings.PENDING_PER_CHANNEL = 2


def edit(owner, notification, **changes):
    return owner.call("PATCH", f"/notification/{notification.id}", changes)


# --- what waits -----------------------------------------------------------------------------------


def test_a_channel_has_a_limit_of_notifications_that_wait(alice, bob, two_pending):
    first = accepted(alice, BODY | SOON, **{"Idempotency-Key": "1"})
    accepted(alice, BODY | SOON)

    assert code(alice.send(BODY | SOON), 409) == "too_many_pending"
    assert Notification.objects.filter(channel=alice.channel).count() == 2
    assert accepted(alice, BODY | SOON, **{"Idempotency-Key": "1"}) == first
    accepted(alice, BODY)  # at once
    accepted(bob, BODY | SOON)


def test_a_cancelled_notification_makes_room(alice, two_pending):
    first = accepted(alice, BODY | SOON)
    accepted(alice, BODY | SOON)
    alice.call("DELETE", f"/cancel-notification/{first.id}")

    accepted(alice, BODY | SOON)


def test_a_send_at_once_is_not_moved_past_the_limit(alice, two_pending):
    waiting = [accepted(alice, BODY | SOON) for _ in range(2)]
    at_once = accepted(alice, BODY)

    assert code(edit(alice, at_once, **SOON), 409) == "too_many_pending"
    assert edit(alice, at_once, title="Hello").status_code == 200
    Notification.objects.filter(pk=at_once.pk).update(status="cancelled")
    moved = edit(alice, waiting[0], scheduled_at="2032-01-02T03:04:05.000Z")
    assert moved.status_code == 200  # it has its place already


def test_the_targets_that_wait_have_a_limit(alice, bob, monkeypatch):
    assert bounds.MOST_WAITING_TARGETS == 100_000
    monkeypatch.setattr(bounds, "MOST_WAITING_TARGETS", 25)
    first = accepted(alice, BODY | SOON | {"external_ids": MANY[:12]})
    accepted(alice, BODY | SOON | {"external_ids": MANY[:12]})

    refused = alice.send(BODY | SOON | {"external_ids": MANY[:12]})

    assert code(refused, 409) == "too_many_pending"
    assert "24 targets of at most 25" in refused.json()["detail"]
    assert Target.objects.count() == 24
    assert code(edit(alice, first, external_ids=MANY[:14]), 409) == "too_many_pending"
    assert edit(alice, first, external_ids=MANY[:13]).status_code == 200
    accepted(alice, BODY | SOON | {"external_ids": MANY[:10]})  # few are not counted
    accepted(bob, BODY | SOON | {"external_ids": MANY[:12]})


# --- what is stored in an hour --------------------------------------------------------------------


@pytest.mark.parametrize(
    "large",
    [
        {"external_ids": MANY},
        {"targets": [{"external_id": "a" * 9}] + [{"external_id": each} for each in MANY[1:]]},
        {"rule": LONG},
        {"translations": LANGUAGES},
    ],
    ids=["people", "targets", "rule", "translations"],
)
def test_large_sends_have_a_limit_by_what_they_store(alice, bob, settings, large):
    settings.LARGE_SEND_KILOBYTES_PER_HOUR = 1
    stored = Notification.objects.count()
    refused = alice.send(BODY | large)

    assert code(refused, 429) == "rate_limited"
    assert refused.headers["RateLimit-Policy"] == '"large-sends";q=1;w=3600'
    assert int(refused.headers["Retry-After"]) > 60
    assert Notification.objects.count() == stored
    accepted(alice, BODY)
    settings.LARGE_SEND_KILOBYTES_PER_HOUR = 1_000
    accepted(bob, BODY | large)


def test_a_thousand_targets_count_as_the_rows_that_they_take(alice, settings):
    settings.LARGE_SEND_KILOBYTES_PER_HOUR = 800  # of 390 KiB each
    sends = [alice.send(BODY | {"external_ids": MANY}).status_code for _ in range(4)]

    assert sends == [202, 202, 429, 429]
    assert Target.objects.count() == 2_000


def test_content_that_a_template_adds_counts(alice, settings):
    settings.LARGE_SEND_KILOBYTES_PER_HOUR = 1
    long = BODY | {"translations": LANGUAGES}
    template = created(alice, {"name": "Long", "content": long})

    refused = alice.send({"template_id": template["template_id"]})

    assert code(refused, 429) == "rate_limited"


def test_an_edit_counts_what_it_stores(alice, settings):
    pending = accepted(alice, BODY | SOON | {"external_ids": ["a"]})
    settings.LARGE_SEND_KILOBYTES_PER_HOUR = 1

    assert code(edit(alice, pending, external_ids=MANY), 429) == "rate_limited"
    assert Target.objects.get().external_id == "a"


def test_a_repeated_key_counts_once(alice, settings):
    settings.LARGE_SEND_KILOBYTES_PER_HOUR = 400
    key = {"Idempotency-Key": "order-17"}
    first = accepted(alice, BODY | {"external_ids": MANY}, **key)

    assert accepted(alice, BODY | {"external_ids": MANY}, **key) == first


def test_a_small_send_makes_no_further_round_trip_to_redis(alice):
    alice.send(BODY)  # afterwards the key is known
    counts = []
    for given in ({}, {"external_ids": MANY[:10]}, {"external_ids": MANY}):
        with asked_of_redis() as asked:
            accepted(alice, BODY | given)
        counts.append([command for _, command in asked].count("EVAL"))
    assert counts == [1, 1, 2]
