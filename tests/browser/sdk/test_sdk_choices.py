"""push.js changes tags and choices of categories, and docs/browser.md's page for them works."""

import pytest
from playwright.sync_api import expect

from subscriptions_app.categories.services import category_create
from subscriptions_app.models import Subscription, Tag
from tests.browser.sdk.site import HTML, attempt, visit
from tests.browser.sdk.support import refusal
from tests.browser.sdk.test_sdk_files import CHANNEL, HOST, code_blocks
from tests.browser.sdk.test_sdk_page import subscribe

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def categories(alice):
    for key, default in (("news", True), ("offers", False)):
        category_create(
            channel=alice.channel,
            key=key,
            name=key.title(),
            description=f"All the {key}",
            default=default,
        )


def tags():
    return sorted(Tag.objects.values_list("tag", flat=True))


def test_tags_are_added_and_removed(allowed, site):
    page = visit(allowed, site)
    subscribe(page)
    assert attempt(page, "push.addTags(['team-7', 'match-1'])") == (None, None)
    assert tags() == ["match-1", "team-7"]
    assert attempt(page, "push.removeTags('match-1')") == (None, None)
    assert tags() == ["team-7"]


def test_of_tags_changed_while_offline_the_last_word_on_each_holds(allowed, site):
    page = visit(allowed, site)
    subscribe(page)
    assert attempt(page, "push.addTags('team-7')") == (None, None)
    allowed.set_offline(True)
    for call in ("addTags(['a', 'b'])", "removeTags(['a', 'team-7'])", "addTags('team-7')"):
        assert refusal(page, f"push.{call}")["code"] == "offline"
    with page.expect_response(lambda answer: answer.url.endswith("/subscribe")):
        allowed.set_offline(False)
    assert tags() == ["b", "team-7"]


def test_a_rejected_tag_says_so_and_is_not_sent_again(allowed, site):
    page = visit(allowed, site)
    subscribe(page)
    assert refusal(page, "push.addTags('no blanks')")["problem"]["status"] == 400
    assert attempt(page, "push.addTags('team-7')") == (None, None)
    assert tags() == ["team-7"]


def test_the_guides_page_shows_and_stores_what_a_visitor_chooses(allowed, site, categories):
    subscribe(visit(allowed, site))
    html = code_blocks("html")[1].replace(HOST, site.service).replace(CHANNEL, site.channel_id)
    site.files["/preferences"] = (HTML, html)
    page = visit(allowed, site, "/preferences")
    news = page.get_by_label("News: All the news")
    offers = page.get_by_label("Offers: All the offers")
    expect(news).to_be_checked()
    expect(offers).not_to_be_checked()

    news.uncheck()
    offers.check()
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("status")).to_have_text("Saved.")
    assert Subscription.objects.get().choices == {"news": False, "offers": True}
    page.reload()
    expect(news).not_to_be_checked()
    expect(offers).to_be_checked()


def test_only_a_subscriber_has_tags_and_choices(context, site):
    page = visit(context, site)
    for call in ("addTags('a')", "removeTags('a')", "preferences()", "setPreferences({a: true})"):
        assert refusal(page, f"push.{call}")["code"] == "not_subscribed"
