"""A button of a notification that Chromium really shows is pressed, as on a desktop."""

import os

import pytest

from notifications_app.models import ActionCount
from tests.api import events
from tests.browser.chromium import beside_with_profile
from tests.browser.desktop import running_desktop
from tests.browser.sdk.site import Worker, visit
from tests.browser.sdk.support import message
from tests.pipeline.support import until

pytestmark = pytest.mark.django_db(transaction=True)
ACTIONS = [{"id": "later", "title": "Later"}, {"id": "buy", "title": "Buy"}]


@pytest.fixture(scope="module")
def desktop():
    with running_desktop() as desktop:
        yield desktop


@pytest.fixture
def worker(chromium, desktop, site, tmp_path):
    """In a browser with a profile: Chromium finds no private window when a button is pressed."""
    environment = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": desktop.address}
    with beside_with_profile(chromium, tmp_path, environment) as context:
        context.set_default_timeout(60_000)
        context.grant_permissions(["notifications"], origin=site.origin)
        yield Worker(visit(context, site, "/"), site)


@pytest.mark.parametrize(("label", "opens"), [("Buy", "/offers?buy"), ("Later", "/offers")])
def test_a_pressed_button_opens_its_url_and_is_counted(
    worker, desktop, service, site, alice, label, opens
):
    notification, (token,) = events.reached(alice, 1, extras={"actions": ACTIONS})
    worker.introduce(baseUrl=service)
    buttons = [ACTIONS[0], ACTIONS[1] | {"url": f"{site.origin}/offers?buy"}]
    title = f"Fresh bread {label}"
    worker.push(message(site, title=title, token=token, actions=buttons))
    assert desktop.buttons(title)[:2] == ["Later", "Buy"]

    with worker.page.context.expect_page() as opened:
        desktop.press(title, label)

    assert opened.value.url == f"{site.origin}{opens}"
    until(lambda: events.counts(notification)[:2] == (1, 1))
    [counted] = ActionCount.objects.filter(notification=notification)
    assert (counted.action, counted.count) == (label.lower(), 1)
