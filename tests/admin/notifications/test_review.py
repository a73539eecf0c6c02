"""The review: the message as devices of the audience get it, and what is missing in it."""

import pytest

from channels_app.models import Channel
from subscriptions_app.segments.services import segment_create
from tests.admin.notifications.composing import CHECK, review, written
from tests.factories import add_each, add_subscriptions

pytestmark = pytest.mark.django_db
HI = "Hi {{ first_name }}"
GERMAN = {"translations.de.title": "Hallo {{ first_name }}"}
TWO_VARIANTS = {
    "variants.0.name": "a",
    "variants.1.name": "b",
    "variants.1.title": "Welcome",
    "test_share": "20",
}
PERSONAL = {"personalize": "on", "on_missing": "empty", "title": HI}


def named(name, language="", **fields):
    return {"attributes": {"first_name": name}, "language": language} | fields


def languages(sender, house, **typed):
    ((_, _, found),) = review(sender, written(house, **typed)).context["variants_shown"]
    return {each.tag: each for each in found}


def titles(one):
    return [(shown.device.partition(", ")[2], shown.content.title) for shown in one.shown]


def test_a_message_is_shown_as_a_device_of_each_language_gets_it(sender, alice):
    add_each(alice.channel, [named("Ada", "en"), named("Bob", "de-AT")])

    found = languages(sender, alice, **PERSONAL, **GERMAN)

    assert titles(found[""]) == [("Web, en", "Hi Ada")]
    assert titles(found["de"]) == [("Web, de-AT", "Hallo Bob")]
    assert (found[""].share, found["de"].share) == ("50 %", "50 %")


def test_a_device_without_a_value_is_shown_beside_one_with_it(sender, alice):
    add_each(alice.channel, [named("Ada"), named("Bob"), named("")])

    (everyone,) = languages(sender, alice, **PERSONAL).values()

    assert [shown.content.title for shown in everyone.shown] == ["Hi Bob", "Hi "]
    assert [list(shown.lacks) for shown in everyone.shown] == [[], ["first_name"]]
    words = "1 of 3 sampled devices has no value for first_name, which has no default."
    assert everyone.missing == [words]


def test_devices_that_get_nothing_are_counted_and_not_shown(sender, alice):
    add_each(alice.channel, [named("Ada"), named(""), named("")])

    (everyone,) = languages(sender, alice, **PERSONAL | {"on_missing": "bounce"}).values()

    assert [shown.content.title for shown in everyone.shown] == ["Hi Ada"]
    assert everyone.missing[-1] == "2 of 3 sampled devices get nothing."


def test_missing_translations_and_languages_are_named(sender, alice):
    add_each(alice.channel, [named("A", "fr"), named("B", "de"), named("C", "de"), named("D")])
    texts = {"actions.0.id": "buy", "actions.0.title": "Buy", "translations.de.title": "Brot"}

    page = review(sender, written(alice, **texts))

    found = {each.tag: each for each in page.context["variants_shown"][0][2]}
    assert found["de"].missing == ["No translation of Text, Button buy: the common text is sent."]
    assert found[""].missing == ["No translation for French (25 %)."]
    assert all(words in page.content.decode() for each in found.values() for words in each.missing)


@pytest.mark.parametrize("rows", [2_000, 3])
def test_the_share_of_a_language_is_that_of_the_audience(sender, alice, monkeypatch, rows):
    """In a random sample, or among the devices that the index finds if the sample has too few."""
    monkeypatch.setattr("subscriptions_app.audiences.sizes.LANGUAGE_ROWS", rows)
    add_subscriptions(alice.channel, 30, language="en", attributes={"plan": "free"})
    add_subscriptions(alice.channel, 3, language="de", attributes={"plan": "pro"})
    add_subscriptions(alice.channel, 1, language="en", attributes={"plan": "pro"})
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    segment = segment_create(channel=alice.channel, name="Payers", rule=rule)
    form = {"segment_id": str(segment.pk), "translations.de.title": "Brot"}

    found = languages(sender, alice, **form)

    assert (found[""].share, found["de"].share) == ("25 %", "75 %")
    checked = sender.post(CHECK, written(alice, **form)).json()
    assert checked["languages"] == {"": "25 %", "de": "75 %"}


def test_the_share_of_a_language_counts_the_platforms_of_the_send(sender, alice):
    add_subscriptions(alice.channel, 2, platform="web", language="de")
    add_subscriptions(alice.channel, 2, platform="ios", language="en")
    found = languages(sender, alice, **{"translations.de.title": "Brot"})
    assert found["de"].share == "100 %"


def test_the_share_of_a_language_counts_the_named_people(sender, alice):
    german, *_ = add_subscriptions(alice.channel, 1, language="de")
    add_subscriptions(alice.channel, 2, language="en")
    ids = {"audience": "subscriptions", "ids": str(german.pk), "translations.de.title": "Brot"}
    assert languages(sender, alice, **ids)["de"].share == "100 %"


def test_platforms_with_texts_of_their_own_are_shown_apart(sender, alice):
    Channel.objects.update(android_enabled=True, ios_enabled=True)
    texts = {"platforms": ["web", "android", "ios"], "ios.subtitle": "Now", "web.title": "Browser"}
    (everyone,) = languages(sender, alice, **texts).values()
    assert [
        ([name for _, name in shown.platforms], shown.content.title, shown.subtitle)
        for shown in everyone.shown
    ] == [
        (["Web"], "Browser", ""),
        (["Android"], "Spring sale", ""),
        (["iOS"], "Spring sale", "Now"),
    ]


@pytest.mark.django_db(transaction=True)  # otherwise each estimate needs a savepoint
def test_a_review_of_everything_needs_few_statements(
    sender, alice, django_assert_max_num_queries, settings
):
    settings.ROWS_KEPT_SECONDS = 3_600
    Channel.objects.update(
        android_enabled=True,
        ios_enabled=True,
        caps=[{"limit": 3, "hours": 24}],
        quiet_hours={"from": "22:00", "to": "08:00"},
        rate_per_minute=100,
    )
    for platform in ("web", "android", "ios"):
        add_each(alice.channel, [named("Ada", "en", platform=platform), named("", "de")] * 20)
    rule = {"attribute": "first_name", "operator": "eq", "value": "Ada"}
    segment = segment_create(channel=alice.channel, name="Adas", rule=rule)
    everything = PERSONAL | GERMAN | TWO_VARIANTS | {"platforms": ["web", "android", "ios"]}
    form = written(alice, segment_id=str(segment.pk), **everything)
    with django_assert_max_num_queries(25):
        shown = review(sender, form).context["variants_shown"]
    assert [(name, len(languages)) for name, _, languages in shown] == [("a", 2), ("b", 2)]
