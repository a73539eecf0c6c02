"""The API reference in Chromium: the key is entered once, and a request can be tried."""

import pytest
from playwright.sync_api import expect

from notifications_app.models import Notification
from tests.api.support import owner_of
from tests.factories import make_channel
from tests.pipeline.support import until

SEND = 'section[id$="/notifications/POST/send-notification"]'


@pytest.fixture
def requested():
    """The addresses that the page asked for."""
    return []


@pytest.fixture
def page(service, chromium, transactional_db, requested):
    with chromium.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("request", lambda request: requested.append(request.url))
        page.goto(f"{service}/docs")
        yield page


def open_send(page):
    page.get_by_role("button", name="notifications").first.click()
    page.get_by_role("link", name="Send a notification").first.click()
    return page.locator(SEND)


def try_it(page, operation):
    """The status of the answer."""
    operation.get_by_role("button", name="Test Request").click()
    with page.expect_response("**/send-notification") as answer:
        page.get_by_role("dialog").get_by_role("button", name="Send").first.click()
    return answer.value.status


@pytest.mark.parametrize("prefix", ["", "Key "])
def test_a_request_can_be_tried_with_the_key_as_issued_or_as_sent(page, prefix):
    owner = owner_of(make_channel())
    page.get_by_label("Value").first.fill(prefix + owner.key)

    assert try_it(page, open_send(page)) == 202

    assert Notification.objects.filter(channel=owner.channel).count() == 1


def test_the_key_survives_a_reload(page):
    page.get_by_label("Value").first.fill("psk_example")
    until(lambda: "psk_example" in page.evaluate("JSON.stringify(localStorage)"))
    page.reload()

    expect(page.get_by_label("Value").first).to_have_value("psk_example", timeout=120_000)


def test_each_call_is_shown_in_the_languages_of_the_examples(page):
    open_send(page).get_by_role("button", name="Curl").first.click()

    shown = page.get_by_role("listbox").inner_text()

    for language in ("Shell", "Python", "Node.js", "PHP", "Go", "Ruby"):
        assert language in shown
    assert "Rust" not in shown


def test_the_reference_loads_nothing_from_another_host(page, service, requested):
    open_send(page).get_by_role("button", name="Test Request").wait_for()

    assert all(url.startswith((service, "data:", "blob:")) for url in requested)
