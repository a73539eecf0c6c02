"""push-sw.js beside the handlers of other push SDKs in one worker."""

import re
from textwrap import dedent

import pytest
from django.conf import settings

from pushsvc.sdk import worker_snippet
from subscriptions_app.models import Subscription
from tests.browser.neighbours import HANDLERS, MESSAGES
from tests.browser.sdk.site import SCRIPT, visit
from tests.browser.sdk.support import declarative, endpoint_of, message, subscribe_elsewhere

NO_CHANNEL = "00000000-0000-0000-0000-000000000000"

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


def guide(language):
    """The code blocks of docs/migrating.md in this language."""
    text = (settings.BASE_DIR / "docs" / "migrating.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [dedent(block) for block in blocks]


def test_the_guides_worker_shows_a_message_to_safari_once(request, site):
    lines, _, guard, *_ = guide("js")
    ours, theirs = lines.splitlines()
    ours = ours.replace("https://push.example.com", site.service)
    theirs = theirs.replace("https://provider.example", site.origin)
    site.files["/worker.js"] = (SCRIPT, HANDLERS["Firebase"])
    site.files["/push-sw.js"] = (SCRIPT, "\n".join([ours, guard, theirs]))
    worker = request.getfixturevalue("worker")

    worker.push(declarative(site))
    worker.deliver(MESSAGES["Firebase"])
    handled(worker)

    assert titles(worker, 3) == ["Fresh bread", "Last", "Theirs"]


def test_the_guides_page_takes_over_the_subscription_of_another_service(allowed, site):
    site.files["/sw.js"] = site.files["/push-sw.js"]
    page = visit(allowed, site, "/offers")
    theirs = subscribe_elsewhere(page, "/sw.js")
    page.add_script_tag(url=f"{site.service}/sdk/push.js")
    _, script, *_ = guide("js")

    page.evaluate(f"async () => {{ {script.replace(NO_CHANNEL, site.channel_id)} }}")

    [subscription] = Subscription.objects.all()
    assert endpoint_of(page) == subscription.address != theirs
