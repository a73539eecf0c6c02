"""push-sw.js in Chromium: messages that Safari could also show without it, and the app's badge.

Chromium does not know such messages: it passes them on as any other. Safari may pass on the
notification alone, as the specification says; the tests dispatch such an event themselves.
"""

import json

import pytest

from tests.browser.sdk.support import declarative, event, message, reported

pytestmark = pytest.mark.django_db(transaction=True)
CONTENT = {
    "data": {"order": "17"},
    "actions": [{"id": "buy", "title": "Buy"}],
    "web": {"tag": "order-17", "lang": "de", "dir": "rtl", "silent": True},
}


@pytest.fixture
def as_others(worker, site):
    """How the worker shows the payload of other push services."""
    options = {"tag": "order-17", "lang": "de", "dir": "rtl", "silent": True}
    actions, data = CONTENT["actions"], CONTENT["data"]
    worker.push(message(site, options=options, actions=actions, data=data))
    [shown] = worker.shown()
    return shown


def proposed(site, **content):
    """The notification of a declarative message."""
    return json.loads(declarative(site, **content))["notification"]


def test_a_declarative_message_is_shown_as_any_other(worker, site, as_others):
    worker.push(declarative(site, **CONTENT))
    assert worker.shown() == [as_others]


def test_a_proposed_notification_is_replaced_by_the_same_as_its_payload(worker, site, as_others):
    worker.introduce()
    worker.dispatch("push", notification=proposed(site, **CONTENT), data=None)
    assert worker.shown() == [as_others]
    assert reported(site, 1) == [[event("received")]]


def test_a_click_on_what_replaced_a_proposed_notification_is_counted(worker, site):
    worker.introduce()
    worker.dispatch("push", notification=proposed(site), data=None)
    worker.shown()
    went = worker.dispatch("notificationclick", action="")
    assert went == [["focus", f"{site.origin}/offers"]]
    assert reported(site, 2) == [[event("received")], [event("clicked")]]


def test_a_proposed_notification_without_our_data_is_shown_as_well_as_possible(worker):
    worker.own_subscription()
    worker.dispatch("push", notification={"title": "Rain", "body": "Soon."}, data=None)
    [shown] = worker.shown()
    assert (shown["title"], shown["body"]) == ("Rain", "Soon.")


RECORD = """() => {
  self.badges = [];
  WorkerNavigator.prototype.setAppBadge = async (count) => { badges.push(count); };
  WorkerNavigator.prototype.clearAppBadge = async () => { badges.push("none"); };
}"""


@pytest.mark.parametrize(
    ("count", "badges"),
    [(3, [3]), (0, ["none"]), (None, []), (-1, []), (1.5, []), ("3", []), (True, [])],
)
def test_the_worker_sets_the_apps_badge(worker, site, count, badges):
    worker.run(RECORD)
    worker.push(message(site, app_badge=count))
    worker.shown()
    assert worker.run("badges") == badges


def test_the_badge_of_a_proposed_notification_is_set(worker, site):
    worker.run(RECORD)
    worker.dispatch("push", notification=proposed(site, web={"app_badge": 3}), data=None)
    worker.shown()
    assert worker.run("badges") == [3]


@pytest.mark.parametrize(
    "change", ["delete at.setAppBadge", "at.setAppBadge = () => { throw Error(); }"]
)
def test_a_browser_without_badges_shows_and_reports_the_message(worker, site, change):
    worker.run(f"() => {{ const at = WorkerNavigator.prototype; {change}; }}")
    worker.introduce()
    worker.push(message(site, app_badge=3))
    assert worker.shown()[0]["title"] == "Fresh bread"
    assert reported(site, 1) == [[event("received")]]
