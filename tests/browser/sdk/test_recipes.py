"""The recipes of docs/recipes.md in Chromium, with the packages and tools that they name."""

import pytest

from subscriptions_app.models import Subscription
from tests.browser.built import IS_READY, SECTIONS, names_for, running_recipe, scope_of
from tests.browser.sdk.site import PushMessages, visit
from tests.browser.sdk.support import message, titles
from tests.pipeline.support import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_recipe_subscribes_a_browser_and_its_only_worker_shows_a_message(
    context, site, tarball, tmp_path, section
):
    """DevTools delivers the message, because Chromium without Google's keys has no push service.
    test_firefox_recipes.py sends one."""
    names = names_for(site.service, site.channel_id)
    with running_recipe(section, tarball, tmp_path, names) as site.origin:
        context.grant_permissions(["notifications"], origin=site.origin)
        page = visit(context, site)
        until(lambda: page.evaluate(IS_READY))
        page.click("#push-subscribe")
        until(lambda: page.evaluate("push.isSubscribed()"))
        for _ in range(3):
            page.reload()
            assert page.evaluate("push.isSubscribed()") is True
            assert page.evaluate("told") == []

        assert str(Subscription.objects.get().channel_id) == site.channel_id
        if section == "Angular":  # its worker has found every file to have the hash of the build
            state = page.evaluate("fetch('/ngsw/state').then((found) => found.text())")
            assert "Driver state: NORMAL" in state
        scope = scope_of(section)
        assert scopes(page) == [f"{site.origin}{scope}"]
        PushMessages(page, site.origin).push(message(site), scope)
        assert titles(page, scope) == ["Fresh bread"]


def scopes(page):
    """Of all workers of the site."""
    return page.evaluate(
        """async () => (await navigator.serviceWorker.getRegistrations()).map(({scope}) => scope)"""
    )
