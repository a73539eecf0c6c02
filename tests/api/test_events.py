"""POST /events: each event of a device counts once, and the answer discloses nothing."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from channels_app.selectors import channel_totals
from notifications_app.content.tracking import make_token
from notifications_app.models import Batch, Delivery, EventHour, HourlyStat, Notification
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from tests.api.events import counts, reached, report, without_id
from tests.factories import add_subscriptions
from tests.hours import stay_in_one_hour

pytestmark = pytest.mark.django_db


def everything():
    """Every row that an event could change."""
    return [
        list(model.objects.order_by("pk").values())
        for model in (Notification, Delivery, Batch, EventHour, HourlyStat, Subscription)
    ]


def test_an_event_is_counted_and_answered_without_a_body(sent):
    _, (token, _) = sent

    answer = report((token, "clicked"))

    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize(
    ("event", "expected"),
    [("received", (1, 0, 0)), ("clicked", (1, 1, 0)), ("dismissed", (1, 0, 1))],
)
def test_each_event_is_counted_once_for_a_recipient(sent, event, expected):
    notification, (token, _) = sent

    for _ in range(3):
        report((token, event))
    report((token, event), (token, event))

    assert counts(notification) == expected


def test_events_of_different_recipients_are_counted_separately(sent):
    notification, (one, other) = sent

    report((one, "received"))
    report((other, "clicked"), (one, "clicked"), (one, "dismissed"))

    assert counts(notification) == (2, 2, 1)


def test_a_click_is_in_every_total_of_the_interface(alice, bob, sent):
    notification, (token, _) = sent
    reached(bob, 1)

    report((token, "clicked"))

    shown = alice.call("GET", f"/notification/{notification.id}").json()
    assert shown["clicked_count"] == 1
    (listed,) = alice.call("GET", f"/notifications/{alice.channel.id}").json()
    assert listed["clicked_count"] == 1
    channel = alice.call("GET", f"/channel/{alice.channel.id}").json()
    assert channel["notification_stats"]["total_clicked"] == 1
    theirs = bob.call("GET", f"/channel/{bob.channel.id}").json()
    assert theirs["notification_stats"]["total_clicked"] == 0


def test_a_click_is_in_the_row_of_the_hour_of_its_report(alice, sent):
    stay_in_one_hour()
    _, (one, other) = sent

    report((one, "clicked"))
    report((one, "clicked"), (other, "clicked"), (other, "received"))

    (hour,) = HourlyStat.objects.filter(clicked__gt=0)
    assert (hour.channel_id, hour.platform, hour.clicked) == (alice.channel.id, "web", 2)
    assert timedelta(0) <= sql.now() - hour.hour < timedelta(hours=1, seconds=1)


def test_one_request_counts_for_several_notifications_and_channels(alice, bob):
    first, (one,) = reached(alice, 1)
    second, tokens = reached(alice, 2)
    third, (three,) = reached(bob, 1)

    events = [(token, "clicked") for token in (three, *tokens, one, *tokens)]
    assert report(*events).status_code == 204

    assert [counts(each)[1] for each in (first, second, third)] == [1, 2, 1]
    assert channel_totals(alice.channel.id).clicked == 3
    assert channel_totals(bob.channel.id).clicked == 1


def test_a_request_is_one_transaction(sent):
    _, tokens = sent

    def statements(*tokens):
        with CaptureQueriesContext(connection) as queries:
            report(*[(token, "clicked") for token in tokens])
        return [query["sql"].split()[0] for query in queries]

    assert statements(tokens[0]) == ["WITH"]
    assert statements(*tokens) == ["SAVEPOINT", "SELECT", "SELECT", "WITH", "RELEASE"]


def flipped(token, bit):
    raw = bytearray(urlsafe_b64decode(token))
    raw[bit // 8] ^= 1 << bit % 8
    return urlsafe_b64encode(raw).decode()


def test_a_token_with_any_bit_flipped_changes_nothing(sent):
    _, (token, _) = sent
    before = everything()

    with CaptureQueriesContext(connection) as queries:
        for first in range(0, 384, 20):
            bits = range(first, min(first + 20, 384))
            assert report(*[(flipped(token, bit), "clicked") for bit in bits]).status_code == 204

    assert not queries.captured_queries
    assert everything() == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: "",
        lambda token: token[:-1],
        lambda token: token[:32],
        lambda token: token + "A",
        lambda token: token + "\n",
        lambda token: token.swapcase(),
        lambda token: "é" * 64,
        lambda token: "x" * 5_000,
    ],
    ids=["empty", "cut", "halved", "longer", "a line", "case", "not ASCII", "long"],
)
def test_an_invalid_token_is_answered_like_a_valid_one_and_changes_nothing(sent, spoil):
    _, (token, _) = sent
    known = report((token, "received"))
    before = everything()

    answer = report((spoil(token), "clicked"))

    assert (answer.status_code, answer.content) == (204, b"")
    assert without_id(answer) == without_id(known)
    assert everything() == before


def test_a_token_of_another_installation_changes_nothing(sent, settings):
    notification, _ = sent
    ours = settings.SECRET_KEY
    settings.SECRET_KEY = "of-another-installation"
    (delivery, _) = Delivery.objects.all()
    theirs = make_token(notification.id, delivery.subscription_id)
    settings.SECRET_KEY = ours
    before = everything()

    assert report((theirs, "clicked")).status_code == 204

    assert everything() == before


def test_a_token_of_a_delivery_that_was_never_planned_changes_nothing(alice, sent):
    notification, _ = sent
    (late,) = add_subscriptions(alice.channel, 1)
    before = everything()

    for ids in [(notification.id, late.id), (uuid7(), late.id), (uuid7(), uuid7())]:
        assert report((make_token(*ids), "clicked")).status_code == 204

    assert everything() == before


def test_good_tokens_count_beside_bad_ones(sent):
    notification, (token, _) = sent

    report((flipped(token, 0), "clicked"), ("", "dismissed"), (token, "clicked"))

    assert counts(notification) == (1, 1, 0)


def age(notification, **by):
    rows = Notification.objects.filter(pk=notification.pk)
    rows.update(started_at=F("started_at") - timedelta(**by))


def test_events_count_until_28_days_after_the_start(sent):
    notification, (one, other) = sent

    age(notification, days=28, seconds=-60)
    report((one, "clicked"))
    assert counts(notification) == (1, 1, 0)

    age(notification, seconds=60)
    before = everything()
    assert report((other, "clicked"), (one, "dismissed")).status_code == 204
    assert everything() == before


def test_the_age_is_counted_from_the_start_and_not_from_the_acceptance(alice):
    scheduled_long_ago = sql.now() - timedelta(days=300)
    notification, (token,) = reached(
        alice, 1, scheduled_at=scheduled_long_ago, created_at=scheduled_long_ago
    )

    report((token, "clicked"))

    assert counts(notification) == (1, 1, 0)


def test_an_event_of_a_deleted_subscription_changes_nothing(sent):
    _, (token, _) = sent
    delivery = Delivery.objects.order_by("subscription_id").first()
    Subscription.objects.filter(pk=delivery.subscription_id).delete()
    before = everything()

    assert report((token, "clicked")).status_code == 204

    assert everything() == before


def test_a_click_after_unsubscribing_is_counted(sent):
    notification, (token, _) = sent
    Subscription.objects.update(expired_at=sql.now())

    report((token, "clicked"))

    assert counts(notification) == (1, 1, 0)


def test_a_request_may_report_twenty_events(alice):
    notification, tokens = reached(alice, 20)

    assert report(*[(token, "clicked") for token in tokens]).status_code == 204

    assert counts(notification) == (20, 20, 0)
