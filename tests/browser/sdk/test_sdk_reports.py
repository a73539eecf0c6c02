"""push-sw.js tells the service what became of a notification, and the site's pages what came."""

import pytest

from pushsvc.sdk import worker_snippet
from tests.browser.sdk.site import visit
from tests.browser.sdk.support import event, message, reported

pytestmark = pytest.mark.django_db(transaction=True)


def test_shown_notifications_are_reported_in_one_call_without_a_preflight(worker, site):
    worker.introduce()
    worker.push(message(site))
    assert reported(site, 1) == [[event("received")]]
    assert [(method, kind) for method, kind, _ in site.requests] == [("POST", "text/plain")]


def test_a_report_that_hangs_delays_no_notification(worker, site):
    worker.introduce()
    site.answering.clear()
    worker.push(message(site))
    reported(site, 1)
    worker.push(message(site, notification_id="another"))
    worker.shown(2)


def test_a_worker_that_knows_no_service_shows_notifications_and_reports_nothing(worker, site):
    worker.push(message(site))
    worker.shown()
    worker.dispatch("notificationclick")
    assert site.requests == []


def test_the_workers_record_survives_a_restart_of_the_worker(worker, site):
    worker.introduce()
    worker.push(message(site))
    reported(site, 1)
    worker.replace(worker_snippet(site.service))
    worker.push(message(site, token="u" * 64))
    assert reported(site, 2)[1] == [event("received", "u" * 64)]


def test_a_dismissal_is_reported_but_not_the_close_after_a_click(worker, site):
    worker.introduce()
    worker.push(message(site))
    worker.shown()
    worker.dispatch("notificationclose")
    assert reported(site, 2)[1] == [event("dismissed")]
    worker.run(
        """async () => {
          const [notification] = await registration.getNotifications();
          for (const name of ["notificationclick", "notificationclose"])
            self.dispatchEvent(Object.assign(new Event(name), {notification, waitUntil: () => {}}));
        }"""
    )
    worker.push(message(site, token="u" * 64))
    last = reported(site, 4)
    assert last[2:] == [[event("clicked")], [event("received", "u" * 64)]]


def test_notifications_of_the_site_itself_are_ignored(worker, site):
    worker.introduce()
    worker.run("registration.showNotification('Own', {data: {url: 'https://alice.example/'}})")
    worker.shown()
    assert worker.dispatch("notificationclick") == []
    assert worker.dispatch("notificationclose") == []
    assert worker.shown()[0]["title"] == "Own"
    assert site.requests == []


@pytest.mark.parametrize("status", [429, 503])
def test_reports_that_could_not_be_sent_are_sent_with_the_next(worker, site, status):
    worker.introduce()
    site.status = status
    worker.push(message(site))
    reported(site, 1)
    site.status = 204
    worker.shown()
    worker.dispatch("notificationclose")
    worker.push(message(site, token="u" * 64))
    assert reported(site, 3)[1:] == [
        [event("received"), event("dismissed")],
        [event("received", "u" * 64)],
    ]


def test_reports_that_could_not_be_sent_are_sent_at_the_next_visit(worker, site):
    worker.introduce()
    site.status = 503
    worker.push(message(site))
    worker.shown()
    worker.dispatch("notificationclick")
    assert len(site.requests) == 2
    site.status = 204
    worker.introduce()
    assert reported(site, 3)[2] == [event("received"), event("clicked")]
    worker.introduce()
    worker.push(message(site, token="u" * 64))
    assert reported(site, 4)[3] == [event("received", "u" * 64)]


def test_rejected_reports_are_not_repeated(worker, site):
    worker.introduce()
    site.status = 400
    worker.push(message(site))
    reported(site, 1)
    worker.push(message(site, token="u" * 64))
    assert reported(site, 2)[1] == [event("received", "u" * 64)]


def test_a_call_holds_at_most_20_reports(worker, site):
    worker.introduce()
    site.status = 503
    worker.push(message(site))
    worker.shown()
    for _ in range(22):
        worker.dispatch("notificationclose")
    assert max(len(events) for events in site.reports) == 20
    site.status = 204
    before = len(site.requests)
    worker.dispatch("notificationclose")
    worker.dispatch("notificationclose")
    assert [len(events) for events in site.reports[before:]] == [20, 5]


def test_every_open_page_of_the_site_gets_a_message(worker, allowed, site):
    worker.introduce()
    page = visit(allowed, site)
    page.evaluate(
        """() => {
          window.told = [];
          for (const type of ["received", "clicked", "dismissed"])
            push.addEventListener(type, ({detail}) => told.push([type, detail]));
        }"""
    )
    worker.push(message(site, data={"order": "17"}))
    worker.shown()
    worker.dispatch("notificationclick")
    page.wait_for_function("told.length === 2")
    shown = {
        name: value
        for name, value in message(site, data={"order": "17"}).items()
        if name != "token"
    }
    assert page.evaluate("told") == [["received", shown], ["clicked", shown]]
