"""push-sw.js beside the handlers of other push SDKs in one worker."""

import pytest

from pushsvc.sdk import worker_snippet
from tests.browser.neighbours import HANDLERS, MESSAGES
from tests.browser.sdk.site import SCRIPT
from tests.browser.sdk.support import message

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=HANDLERS)
def provider(request):
    return request.param


@pytest.fixture(params=["ours first", "theirs first"])
def beside(request, site, provider):
    """The site's worker with our line and the handlers of another SDK."""
    parts = [worker_snippet(site.service), HANDLERS[provider]]
    ordered = parts if request.param == "ours first" else reversed(parts)
    site.files["/push-sw.js"] = (SCRIPT, "".join(ordered))
    return request.getfixturevalue("worker")


def handled(worker):
    """Waits until the worker has handled the messages before: it handles them in turn."""
    worker.push({"notification_id": "last", "token": "z" * 64, "title": "Last"})


def titles(worker, count):
    return sorted(each["title"] for each in worker.shown(count))


def test_a_message_of_another_provider_is_shown_once_by_its_own_handler(beside, provider):
    beside.deliver(MESSAGES[provider])
    handled(beside)
    assert titles(beside, 2) == ["Last", "Theirs"]


def test_our_message_is_shown_once_by_our_handler(beside, site):
    beside.push(message(site))
    handled(beside)
    assert titles(beside, 2) == ["Fresh bread", "Last"]


@pytest.mark.parametrize("payload", ["", "not json", "17", "{}", '{"title": "Theirs"}'])
def test_a_message_without_our_mark_to_anothers_subscription_is_left_alone(worker, payload):
    worker.deliver(payload)
    handled(worker)
    assert titles(worker, 1) == ["Last"]


@pytest.mark.parametrize("beside", ["ours first"], indirect=True)
def test_a_click_on_our_notification_opens_one_page_if_our_line_comes_first(beside, site):
    beside.push(message(site, url=f"{site.origin}/elsewhere"))
    beside.shown()
    assert beside.dispatch("notificationclick") == [["open", f"{site.origin}/elsewhere"]]
