"""Clicks of a notification's buttons: each recipient's first, by the id of the button."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client

from notifications_app.models import ActionCount, Delivery
from tests.api.events import counts, reached
from tests.api.support import accepted, code, errors

pytestmark = pytest.mark.django_db
ACTIONS = [{"id": "later", "title": "Later"}, {"id": "buy", "title": "Buy"}]


@pytest.fixture
def sent(alice):
    """A notification with buttons that has reached three browsers: (notification, tokens)."""
    return reached(alice, 3, extras={"actions": ACTIONS})


def report(*events):
    """Each event is (token, event, action)."""
    names = ("token", "event", "action")
    body = {"events": [dict(zip(names, event, strict=False)) for event in events]}
    return Client().post("/events", json.dumps(body), content_type="application/json")


def clicked(owner, notification):
    return owner.call("GET", f"/notification/{notification.id}/details").json()["actions_clicked"]


def actions_of(notification):
    rows = Delivery.objects.filter(notification_id=notification.id).order_by("subscription_id")
    return [row.clicked_action for row in rows]


def test_a_click_is_counted_with_its_button(alice, sent):
    notification, (one, two, three) = sent

    assert report((one, "clicked", "buy")).status_code == 204
    report((two, "clicked", "buy"), (three, "clicked", "later"))

    assert clicked(alice, notification) == {"later": 1, "buy": 2}
    assert list(clicked(alice, notification)) == ["later", "buy"]
    assert (counts(notification), actions_of(notification)) == ((3, 3, 0), [1, 1, 0])


def test_the_first_click_of_a_recipient_counts_with_its_button(alice, sent):
    notification, (one, two, three) = sent

    report((one, "clicked", "buy"), (one, "clicked", "later"))
    report((one, "clicked", "later"))
    report((two, "clicked"))
    report((two, "clicked", "buy"))
    report((three, "dismissed"), (three, "clicked", "later"))

    assert clicked(alice, notification) == {"later": 1, "buy": 1}
    assert (counts(notification), actions_of(notification)) == ((3, 3, 1), [1, None, 0])


@pytest.mark.parametrize("action", ["", "BUY", "sell", "0", "x" * 300, "' OR 1=1"])
def test_a_button_that_there_is_not_is_a_click_all_the_same(alice, sent, action):
    notification, (one, *_) = sent

    assert report((one, "clicked", action)).status_code == 204

    assert clicked(alice, notification) == {"later": 0, "buy": 0}
    assert counts(notification) == (1, 1, 0)


def test_a_button_of_another_event_is_ignored(alice, sent):
    notification, (one, two, _) = sent

    report((one, "received", "buy"), (two, "dismissed", "buy"))

    assert clicked(alice, notification) == {"later": 0, "buy": 0}
    assert counts(notification) == (2, 0, 1)


def test_a_notification_without_buttons_counts_none(alice):
    notification, (one,) = reached(alice, 1)

    report((one, "clicked", "buy"))

    assert clicked(alice, notification) == {}
    assert counts(notification) == (1, 1, 0)
    assert not ActionCount.objects.exists()


def test_an_action_is_a_text(sent):
    _, (one, *_) = sent
    assert errors(report((one, "clicked", 5))) == [("events.0.action", "not_a_string")]
    assert report((one, "clicked", None)).status_code == 204


@pytest.mark.django_db(transaction=True)
def test_clicks_at_once_add_up(alice):
    notification, tokens = reached(alice, 20, extras={"actions": ACTIONS})

    def click(token):
        try:
            report((token, "clicked", "buy"), (token, "clicked", "later"))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(click, tokens * 3))

    assert clicked(alice, notification) == {"later": 0, "buy": 20}
    assert counts(notification) == (20, 20, 0)


def test_the_ids_of_buttons_are_fixed_once_it_is_being_sent(alice):
    later = {"body": "x", "scheduled_at": "2999-01-01T00:00:00Z", "actions": ACTIONS}
    notification = accepted(alice, later)
    path = f"/notification/{notification.id}"
    assert alice.call("PATCH", path, {"actions": ACTIONS[:1]}).status_code == 200

    notification, _ = reached(alice, 1, extras={"actions": ACTIONS})
    path = f"/notification/{notification.id}"
    alice.call("POST", f"{path}/pause")
    for other in (ACTIONS[:1], ACTIONS[::-1], None):
        assert code(alice.call("PATCH", path, {"actions": other}), 409) == "not_editable"
    renamed = [{**each, "title": "New"} for each in ACTIONS]
    assert alice.call("PATCH", path, {"actions": renamed}).status_code == 200
