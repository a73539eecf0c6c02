"""Which texts a device gets, by its platform and language."""

from itertools import pairwise
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.content import Content
from notifications_app.delivery.messages import Messages, Unsendable
from notifications_app.personal import values_of
from pushsvc.common.languages import is_language, lookup_order
from pushsvc.common.platforms import Platform

GERMAN = {"title": "Brot", "body": "Text"}
BRAZILIAN = {"title": "Título BR"}
PORTUGUESE = {"title": "Título", "body": "Texto", "url": "https://shop.example/pt"}


def messages(platform="web", **fields):
    content = Content(**{"title": "Title", "body": "Body", "ttl": 60} | fields)
    return Messages(uuid4(), content, Platform(platform), expires_at=0.0)


def texts(language, **fields):
    content = messages(**fields).of(language).content
    return content.title, content.body


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("pt-BR", ("Título BR", "Texto")),
        ("PT-br", ("Título BR", "Texto")),
        ("pt-BR-abnt", ("Título BR", "Texto")),
        ("pt", ("Título", "Texto")),
        ("pt-PT", ("Título", "Texto")),
        ("de-AT", ("Brot", "Text")),
        ("fr", ("Title", "Body")),
        ("", ("Title", "Body")),
        ("d", ("Title", "Body")),
        ("no language at all", ("Title", "Body")),
    ],
)
def test_a_device_gets_the_texts_of_its_language_field_by_field(language, expected):
    translations = {"pt-BR": BRAZILIAN, "pt": PORTUGUESE, "De": GERMAN}
    assert texts(language, translations=translations) == expected


def test_a_sibling_is_no_substitute():
    assert texts("pt-PT", translations={"pt-BR": BRAZILIAN}) == ("Title", "Body")
    assert texts("pt", translations={"pt-BR": BRAZILIAN}) == ("Title", "Body")


@pytest.mark.parametrize(
    ("language", "order"),
    [
        ("zh-Hant-TW", ["zh-hant-tw", "zh-hant", "zh"]),
        ("zh-Hant-CN-x-private1-private2", [
            "zh-hant-cn-x-private1-private2", "zh-hant-cn-x-private1", "zh-hant-cn", "zh-hant",
            "zh",
        ]),
        ("en", ["en"]),
    ],
)  # fmt: skip
def test_languages_are_looked_up_as_rfc_4647_says(language, order):
    """The second example is of the RFC, section 3.4."""
    assert list(lookup_order(language)) == order


@given(st.text(max_size=300))
def test_any_text_can_be_looked_up(language):
    order = list(lookup_order(language))
    assert order[0] == language.lower()
    assert all(longer.startswith(shorter) for longer, shorter in pairwise(order))


@pytest.mark.parametrize(
    "tag",
    ["de", "DE-at", "zh-Hant-TW", "es-419", "sl-rozaj-biske", "de-DE-u-co-phonebk", "en-x-us"],
)
def test_a_well_formed_tag_is_one(tag):
    assert is_language(tag)


@pytest.mark.parametrize(
    "tag",
    ["", "d", "de_DE", "german language", "de-", "-de", "x", "de-DE-u", "a-de", "日本", "de\n"],
)
def test_a_malformed_tag_is_none(tag):
    assert not is_language(tag)


def test_a_platforms_own_texts_are_above_a_translation():
    own = {"title": "Own", "image": None}
    content = (
        messages(web=own, translations={"de": GERMAN | {"image": "https://shop.example/de.png"}})
        .of("de")
        .content
    )
    assert (content.title, content.body, content.image) == ("Own", "Text", "")
    assert texts("de", web=own, translations={"de": GERMAN}, platform="ios") == ("Brot", "Text")


def test_buttons_have_the_titles_of_the_language():
    actions = [
        {"id": "buy", "title": "Buy", "url": "https://shop.example/"},
        {"id": "no", "title": "No"},
    ]
    translations = {"de": {"actions": {"buy": "Kaufen"}}, "de-CH": {"actions": {"no": "Nei"}}}
    found = messages(actions=actions, translations=translations).of("de-CH").content.actions
    assert found == [actions[0] | {"title": "Kaufen"}, actions[1] | {"title": "Nei"}]


@pytest.mark.parametrize(
    ("platform", "urls"),
    [
        ("web", ["https://shop.example/", "/no", None]),
        ("android", ["myshop://buy", "https://shop.example/no", None]),
        ("ios", ["https://shop.example/", "https://shop.example/no", "myshop://later"]),
    ],
)
def test_buttons_have_the_urls_of_the_platform(platform, urls):
    actions = [
        {
            "id": "buy",
            "title": "Buy",
            "url": "https://shop.example/",
            "android_url": "myshop://buy",
        },
        {"id": "no", "title": "No", "url": "https://shop.example/no", "web_url": "/no"},
        {"id": "later", "title": "Later", "ios_url": "myshop://later"},
    ]
    found = messages(platform, actions=actions).of("").content.actions
    assert [each.get("url") for each in found] == urls
    assert all(each.keys() <= {"id", "title", "url"} for each in found)


def test_transports_can_cache_each_languages_message():
    plain = messages()
    assert plain.of("de") is plain.of("") is plain.of("fr")
    assert not plain.asks
    translated = messages(translations={"de": GERMAN})
    assert translated.of("de") is translated.of("de-AT") is translated.of("DE")
    assert translated.of("fr") is translated.of("")
    assert translated.of("fr") is not translated.of("de")


@pytest.mark.parametrize(("platform", "lacks"), [("web", False), ("android", False), ("ios", True)])
def test_only_iphones_lack_a_value_for_the_subtitle(platform, lacks):
    subtitle = {"ios": {"subtitle": "{{ nick }}"}}
    own = messages(platform, personalize=True, on_missing="bounce", **subtitle)
    values = values_of(platform=platform, notification_id="")

    found = own.for_recipient("", values)

    assert isinstance(found, Unsendable) == lacks
    assert own.missing("", values) == ["nick"] * lacks
