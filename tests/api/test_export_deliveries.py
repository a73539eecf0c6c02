"""`GET /notification/:notificationId/deliveries`."""

import csv
import io

import pytest
from django.db.models.functions import Now

from notifications_app.models import Delivery, Notification
from notifications_app.reporting import deliveries as reporting
from notifications_app.states import DeliveryStatus
from pushsvc.common.store import sql
from tests.api.support import code, errors, owner_of
from tests.api.test_export import content, lines, next_page, pages, pages_read
from tests.factories import (
    add_subscription,
    add_subscriptions,
    make_channel,
    make_notification,
    make_person,
)
from tests.pipeline.support import plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return owner_of(make_channel())


def path(notification, query=""):
    return f"/notification/{notification.pk}/deliveries{query}"


@pytest.fixture
def notification(alice):
    """With seven recipients, besides another one to the same devices."""
    add_subscriptions(alice.channel, 7)
    notification = make_notification(alice.channel)
    make_notification(alice.channel)
    plan(notification)
    return notification


def deliveries(notification):
    return Delivery.objects.filter(notification_id=notification.pk).order_by("subscription_id")


def test_a_row_says_everything_about_a_recipient(alice):
    device = add_subscription(alice.channel, person=make_person(alice.channel))
    buttons = [{"id": "buy", "title": "Buy"}, {"id": "later", "title": "Later"}]
    sent = alice.send({"body": "Hello", "actions": buttons}).json()["notification_id"]
    notification = Notification.objects.get(pk=sent)
    plan(notification)
    (delivery,) = deliveries(notification)
    response = alice.call("GET", path(notification))
    assert response.headers["Content-Type"] == "application/x-ndjson"
    assert lines(response) == [
        {
            "subscription_id": str(device.pk),
            "external_id": "user-42",
            "platform": "web",
            "outcome": "waiting",
            "code": None,
            "detail": None,
            "attempts": 0,
            "action": None,
            "finished_at": None,
            "received_at": None,
            "clicked_at": None,
            "dismissed_at": None,
        }
    ]

    Delivery.objects.filter(pk=delivery.pk).update(
        status=DeliveryStatus.DELIVERED,
        attempts=2,
        finished_at=Now(),
        received_at=Now(),
        clicked_at=Now(),
        clicked_action=1,
    )
    device.delete()
    (row,) = lines(alice.call("GET", path(notification)))
    assert (row["outcome"], row["attempts"], row["action"]) == ("delivered", 2, "later")
    assert row["finished_at"] == row["received_at"] == row["clicked_at"]
    assert row["clicked_at"].endswith("Z")
    assert row["external_id"] is None  # nobody has the device any more


def test_all_pages_have_each_recipient_once(alice, notification):
    rows = [row for page in pages(alice, path(notification, "?limit=3")) for row in page]
    ids = deliveries(notification).values_list("subscription_id", flat=True)
    assert [row["subscription_id"] for row in rows] == [str(each) for each in ids]
    assert len(rows) == 7


def test_pages_have_the_recipients_with_the_outcome(alice, notification, monkeypatch):
    """Each page reads a bounded number of recipients."""
    monkeypatch.setattr(reporting, "_MOST_READ", 3)
    *_, before, last = deliveries(notification)
    Delivery.objects.filter(pk__in=[before.pk, last.pk]).update(
        status=DeliveryStatus.BOUNCED, code="endpoint_gone", detail="410 =1", finished_at=Now()
    )
    found = list(pages(alice, path(notification, "?limit=1&outcome=bounced")))
    assert [len(page) for page in found] == [0, 1, 1]
    assert found[2][0]["subscription_id"] == str(last.subscription_id)
    assert (found[2][0]["outcome"], found[2][0]["code"]) == ("bounced", "endpoint_gone")
    waiting = pages(alice, path(notification, "?limit=2&outcome=waiting"))
    assert [len(page) for page in waiting] == [2, 2, 1]

    response = alice.call("GET", path(notification, f"?format=csv&after={before.subscription_id}"))
    (row,) = csv.DictReader(io.StringIO(content(response)))
    assert (row["subscription_id"], row["attempts"]) == (str(last.subscription_id), "0")
    assert next_page(response) is None


def test_a_page_at_the_end_costs_as_much_as_one_at_the_start(alice, notification):
    """Also among the recipients of another notification."""
    batch = deliveries(notification).first().batch_id
    for each in Notification.objects.all():
        sql.execute(_RECIPIENTS, {"notification": each.pk, "batch": batch})
    sql.execute("ANALYZE notifications_app_delivery", {})
    before_the_end = deliveries(notification).reverse()[100].subscription_id
    start, end = (
        pages_read(alice, path(notification, f"?limit=100{after}"), "app_delivery", 2)
        for after in ("", f"&after={before_the_end}")
    )
    assert end <= 1.2 * start


# In the order of their ids, as they are planned.
_RECIPIENTS = """
INSERT INTO notifications_app_delivery (notification_id, subscription_id, batch_id)
SELECT %(notification)s, lpad(to_hex(n), 32, '0')::uuid, %(batch)s FROM generate_series(1, 6000) n
"""


def test_bad_parameters_are_all_named(alice, notification):
    query = "?limit=0&after=1&outcome=gone&format=xml"
    assert set(errors(alice.call("GET", path(notification, query)))) == {
        ("limit", "out_of_range"),
        ("after", "not_a_uuid"),
        ("outcome", "not_a_choice"),
        ("format", "not_a_choice"),
    }


def test_another_channel_and_another_scope_read_nothing(alice, notification):
    bob = owner_of(make_channel())
    assert code(bob.call("GET", path(notification)), 404) == "not_found"
    weak = owner_of(alice.channel, scopes=("send", "read", "manage"))
    assert code(weak.call("GET", path(notification)), 403) == "missing_scope"
