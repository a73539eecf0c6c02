"""Which texts a device gets, by its platform and language."""

from itertools import pairwise
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.content.personal import values_of
from notifications_app.content.values import Content
from notifications_app.delivery.messages import Messages, Unsendable
from pushsvc.common.languages import MAX_LANGUAGE, canonical_language, lookup_key, lookup_order
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
        ("pt_BR", ("Título BR", "Texto")),
        ("pt_BR.UTF-8", ("Título BR", "Texto")),
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
    assert order[0] == lookup_key(language)
    assert all(longer.startswith(shorter) for longer, shorter in pairwise(order))


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("de", "de"),
        ("DE-at", "de-AT"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("es_419", "es-419"),
        ("sl-rozaj-biske", "sl-rozaj-biske"),
        ("de-DE-u-co-phonebk", "de-DE-u-co-phonebk"),
        ("en-X-US", "en-x-us"),
        ("sr_RS@latin", "sr-Latn-RS"),
        ("de_DE.ISO-8859-15@euro", "de-DE"),
        ("en_US@calendar=japanese;currency=EUR", "en-US"),
        ("en-US@posix", "en-US-u-va-posix"),
        ("en_US_POSIX", "en-US-u-va-posix"),
        ("zh__#Hans", "zh-Hans"),
        ("ja_JP_JP_#u-ca-japanese", "ja-JP-u-ca-japanese"),
        ("no_NO_NY", "nn-NO"),
        ("in_ID", "id-ID"),
        ("tl-PH", "fil-PH"),
        ("en_UK", "en-GB"),
    ],
)
def test_a_language_has_one_form(text, tag):
    assert canonical_language(text) == tag
    assert canonical_language(tag) == tag


@pytest.mark.parametrize(
    "text",
    [
        *["", "d", "german language", "german", "null", "de-", "-de", "de_", "x", "de-DE-u"],
        *["a-de", "日本", "de\n", "C", "POSIX", "C.UTF-8", "de@dialect", "de,en", "*", "de;q=1"],
        "en--US",
    ],
)
def test_what_names_no_language_has_none(text):
    assert canonical_language(text) is None


parts = st.sampled_from(
    ["de", "iw", "zh", "hant", "TW", "UK", "419", "POSIX", "1996", "x", "u", "ca"]
)
locales = st.lists(parts, min_size=1, max_size=6).map("_".join)
endings = st.sampled_from(["", ".UTF-8", "@latin", "@posix", "@euro", "_#Hant", "#Latn_u-ca-x"])


@given(st.text(max_size=120) | st.builds(str.__add__, locales, endings))
def test_a_canonical_form_stays(text):
    tag = canonical_language(text)
    assert tag is None or (canonical_language(tag) == tag and len(tag) <= MAX_LANGUAGE)
    if text.isascii():
        assert canonical_language(text.upper()) == canonical_language(text.lower()) == tag


def test_a_device_and_a_translation_may_name_a_language_differently():
    """As they were stored by an earlier version."""
    old, new = {"iw": GERMAN}, {"he": GERMAN}
    assert texts("he-IL", translations=old) == texts("iw", translations=new) == ("Brot", "Text")


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
    assert not plain.needs
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
