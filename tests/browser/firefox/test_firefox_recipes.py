"""The recipes of docs/recipes.md in Firefox, which subscribes, and is sent a message."""

import pytest

from tests.browser.built import IS_READY, SECTIONS, names_for, running_recipe, scope_of
from tests.browser.firefox.test_firefox import SUBSCRIBE, shown
from tests.pipeline.support import until

WORKERS = (
    """navigator.serviceWorker.getRegistrations().then((all) => all.map(({scope}) => scope))"""
)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_recipe_subscribes_a_browser_and_its_only_worker_shows_a_message(
    firefox, alice, tarball, tmp_path, section
):
    names = names_for(alice.service.url, alice.channel.id)
    with running_recipe(section, tarball, tmp_path, names) as origin:
        alice.site.url = f"{origin}/"
        firefox.open(alice.site.url)
        until(lambda: firefox.in_page(IS_READY))
        firefox.click(SUBSCRIBE)
        until(lambda: firefox.in_page("push.isSubscribed()"))
        before = alice.subscription().address
        for _ in range(3):
            firefox.open(alice.site.url)
            assert firefox.in_page("push.isSubscribed()") is True
            assert firefox.in_page("told") == []

        assert firefox.in_page(WORKERS) == [f"{origin}{scope_of(section)}"]
        assert alice.subscription().address == before
        sent = alice.send(title="Bread")
        shown(firefox, ("Bread", "Fresh bread"))
        until(lambda: alice.reports(sent) == (1, 0, 0))
