"""The tabs of languages on the forms that write a notification: who reads them, what is missing."""

import re

import pytest

from subscriptions_app.audiences.languages import language_shares
from tests.admin.notifications.composing import COMPOSE, written
from tests.admin.notifications.test_actions import scheduled
from tests.factories import add_subscriptions, make_channel

pytestmark = pytest.mark.django_db
TEXTS = {
    "actions.0.id": "buy",
    "actions.0.title": "Buy",
    "translations.de.title": "Frühling",
    "translations.de-AT.body": "Zwanzig",
    "translations.pt.actions.buy": "Comprar",
}


def tabs(answer):
    return {each.section.label: each for each in answer.context["language_tabs"]}


def page_of(sender, house, **typed):
    return sender.post(COMPOSE, written(house, **typed) | {"step": "edit"})


def missing(tab):
    return [each.common for each in tab.section.inputs if each.is_missing]


def test_what_a_more_general_language_has_is_not_missing(sender, alice):
    found = tabs(page_of(sender, alice, **TEXTS))

    assert {tag: missing(each) for tag, each in found.items()} == {
        "de": ["body", "actions.buy"],
        "de-AT": ["actions.buy"],
        "pt": ["title", "body"],
    }


def test_nothing_is_missing_of_a_text_that_there_is_not(sender, alice):
    found = tabs(page_of(sender, alice, title="", **{"translations.de.body": "Zwanzig"}))
    assert missing(found["de"]) == []


def test_the_share_of_a_language_is_that_of_the_devices_which_get_its_texts(sender, alice):
    for language, count in (("de", 2), ("de-AT", 1), ("de-Latn-CH", 1), ("pt-BR", 1), ("fr", 4)):
        add_subscriptions(alice.channel, count, language=language)
    add_subscriptions(alice.channel, 1, attributes={"language": "pt"})
    add_subscriptions(alice.channel, 2, language="pt", expired_at="2026-01-01 00:00:00Z")
    add_subscriptions(make_channel("Another", account=alice.account), 5, language="de")

    answer = page_of(sender, alice, **TEXTS)

    assert {tag: each.share for tag, each in tabs(answer).items()} == {
        "de": "30 %",
        "de-AT": "10 %",
        "pt": "20 %",
    }
    assert answer.context["others_share"] == "40 %"
    assert answer.context["languages_offered"] == [("fr", "French, 40 % of the devices")]


def test_a_platforms_sample_counts_as_much_as_the_platform_has_devices(alice, monkeypatch):
    monkeypatch.setattr("subscriptions_app.audiences.sizes.LANGUAGE_ROWS", 2)
    add_subscriptions(alice.channel, 9, platform="web", language="de")
    add_subscriptions(alice.channel, 3, platform="ios", language="en")

    assert language_shares(alice.channel.pk) == {"de": 0.75, "en": 0.25, "": 0}


def test_a_channel_without_devices_has_no_shares(sender, alice):
    answer = page_of(sender, alice, **TEXTS)
    assert {each.share for each in tabs(answer).values()} == {""}
    assert language_shares(alice.channel.pk) == {}


def test_without_scripts_each_language_is_a_section_that_a_link_leads_to(sender, alice):
    page = page_of(sender, alice, **TEXTS, add_language="fr").content.decode()

    links = re.findall(r'<a href="#(language-\d)"', page)
    assert len(links) == 5
    assert all(f'id="{each}"' in page for each in links)
    assert '<h3 class="ps-title">German (de)</h3>' in page
    assert 'data-language="fr" data-opened' in page
    assert 'role="tab"' not in page


def test_a_language_is_added_to_an_edit_and_nothing_is_saved(sender, alice):
    notification = scheduled(alice.channel)
    path = f"/admin/notifications_app/notification/{notification.pk}/edit/"

    answer = sender.post(path, {"step": "edit", "add_language": "fr", "body": "Half of a thought"})

    assert list(tabs(answer)) == ["fr"]
    assert answer.context["form"].body == "Half of a thought"
    notification.refresh_from_db()
    assert (notification.body, notification.extras) == ("Twenty per cent off until Sunday.", None)
