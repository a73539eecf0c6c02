"""push-sw.js opens or focuses a page after a click on a notification or its buttons."""

import pytest

from tests.browser.sdk.site import HTML, Worker, visit
from tests.browser.sdk.support import event, message, reported

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_click_opens_the_url_closes_the_notification_and_is_reported(worker, site):
    worker.introduce()
    worker.push(message(site, url=f"{site.origin}/elsewhere"))
    worker.shown()
    assert worker.dispatch("notificationclick") == [["open", f"{site.origin}/elsewhere"]]
    assert worker.shown(0) == []
    assert reported(site, 2) == [[event("received")], [event("clicked")]]


def test_a_click_focuses_the_page_that_already_shows_the_url(worker, site):
    worker.push(message(site))
    worker.shown()
    assert worker.dispatch("notificationclick") == [["focus", f"{site.origin}/offers"]]


def opened(worker, page, site, url, click):
    """What a click does after the visitor has looked at this page last."""
    page.bring_to_front()
    worker.push(message(site, url=url, click=click))
    worker.shown()
    return worker.dispatch("notificationclick")


@pytest.mark.parametrize("click", ["navigate", "focus"])
def test_a_click_opens_the_url_in_a_tab_of_the_site(worker, allowed, site, click):
    page = visit(allowed, site, "/offers")
    went = opened(worker, page, site, "/?tab=2", click)
    page.wait_for_url(f"{site.origin}/?tab=2")
    assert went == [["focus", f"{site.origin}/offers"]]


@pytest.mark.parametrize("click", ["navigate", "focus"])
def test_links_of_other_sites_are_opened_in_a_tab_of_their_own(worker, allowed, site, click):
    url = "https://bob.example/"
    page = visit(allowed, site, "/offers")
    assert opened(worker, page, site, url, click) == [["open", url]]


@pytest.mark.parametrize("click", ["navigate", "focus"])
def test_the_sdk_navigates_a_page_that_the_worker_does_not_control(allowed, site, click):
    worker = Worker(visit(allowed, site), site)  # installed after the page was loaded
    worker.introduce()
    went = opened(worker, worker.page, site, "/offers", click)
    worker.page.wait_for_url(f"{site.origin}/offers")
    assert went == [["focus", f"{site.origin}/"]]


def test_a_frame_that_shows_the_url_is_no_tab(worker, allowed, site):
    site.files["/inner"] = site.files["/offers"]
    site.files["/framing"] = (HTML, '<!DOCTYPE html><iframe src="/inner"></iframe>')
    page = visit(allowed, site, "/framing")
    went = opened(worker, page, site, "/inner", "navigate")
    page.wait_for_url(f"{site.origin}/inner")
    assert went == [["focus", f"{site.origin}/framing"]]


@pytest.mark.parametrize("click", ["navigate", "focus"])
def test_a_page_without_the_sdk_that_the_worker_does_not_control_stays(worker, site, click):
    worker.push(message(site, url="/elsewhere", click=click))
    worker.shown()
    went = worker.dispatch("notificationclick")
    assert went == [["open", f"{site.origin}/elsewhere"]]


def test_a_page_opens_the_url_itself(worker, allowed, site):
    worker.introduce()
    page = visit(allowed, site)
    page.evaluate(
        "push.addEventListener('open', (event) => {"
        " event.preventDefault(); self.told = event.detail; })"
    )
    worker.push(message(site, url="/elsewhere", click="focus", actions=BUTTONS))
    worker.shown()
    went = worker.dispatch("notificationclick", action="path")
    assert went == [["focus", f"{site.origin}/"]]
    assert page.evaluate("told.url") == f"{site.origin}/orders/1?a#b"
    assert page.url == f"{site.origin}/"


BUTTONS = [
    {"id": "later", "title": "Later"},
    {"id": "buy", "title": "Buy", "url": "https://bob.example/buy"},
    {"id": "bad", "title": "Bad", "url": "javascript:alert(1)"},
    {"id": "path", "title": "Path", "url": "/orders/1?a#b"},
]


@pytest.mark.parametrize(
    ("action", "opens"),
    [
        ("buy", "https://bob.example/buy"),
        ("later", "{site}/elsewhere"),
        ("bad", "{site}/"),
        ("path", "{site}/orders/1?a#b"),
    ],
)
def test_a_click_on_a_button_opens_its_url_and_is_reported_with_it(worker, site, action, opens):
    worker.introduce()
    worker.push(message(site, url=f"{site.origin}/elsewhere", actions=BUTTONS))
    worker.shown()
    went = worker.dispatch("notificationclick", action=action)
    assert went == [["open", opens.format(site=site.origin)]]
    assert reported(site, 2)[1] == [event("clicked") | {"action": action}]


def test_a_page_learns_which_button_was_clicked(worker, allowed, site):
    worker.introduce()
    page = visit(allowed, site)
    page.evaluate("push.addEventListener('clicked', ({detail}) => { self.told = detail; })")
    worker.push(message(site, actions=BUTTONS))
    worker.shown()
    worker.dispatch("notificationclick", action="buy")
    page.wait_for_function("self.told")
    assert page.evaluate("told.action") == "buy"


def test_a_click_opens_a_path_of_the_site_and_focuses_its_page(worker, site):
    worker.push(message(site, url="/elsewhere/../offers"))
    worker.shown()
    assert worker.dispatch("notificationclick") == [["focus", f"{site.origin}/offers"]]


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "data:text/html,x", "file:///", "myshop://orders/1", "x", None),
        *(
            "//bob.example/x",
            "/\\bob.example/x",
            "\\\\bob.example",
            "/\t/bob.example",
            " //bob.example",
        ),
    ],
)
def test_a_click_opens_only_http_and_https_and_the_site_otherwise(worker, site, url):
    worker.push(message(site, url=url))
    worker.shown()
    assert worker.dispatch("notificationclick") == [["open", f"{site.origin}/"]]
