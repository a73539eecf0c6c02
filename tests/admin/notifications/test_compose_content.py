"""Buttons, and what is for one platform alone, in the forms that write a notification."""

from urllib.parse import urlencode

import pytest

from notifications_app.admin.compose.extras import flat, nested
from notifications_app.content.fields import ACTION, OBJECTS, Type
from notifications_app.content.values import Content
from notifications_app.models import Draft, Notification
from tests.admin.notifications.composing import (
    COMPOSE,
    duplicate,
    errors,
    send,
    shown_in,
    written,
)
from tests.admin.notifications.test_actions import scheduled
from tests.admin.notifications.test_edit import edited
from tests.api.test_send_platforms import FULL

pytestmark = pytest.mark.django_db
TYPED = {
    "actions.0.id": "buy",
    "actions.0.title": "Buy",
    "actions.1.id": "",
    "web.title.none": "on",
    "web.silent": "on",
    "android.count": "3",
    "ios.relevance_score": "0.5",
    "ios.sound.none": "on",
    "ios.subtitle": "",
}


def test_what_is_typed_is_sent(sender, alice):
    send(sender, written(alice, **TYPED))

    assert Notification.objects.get().extras == {
        "actions": [{"id": "buy", "title": "Buy"}],
        "web": {"title": None, "silent": True},
        "android": {"count": 3},
        "ios": {"relevance_score": 0.5, "sound": None},
    }


@pytest.fixture
def everything():
    translations = {"de": {"title": "Brot", "actions": {"buy": "Kaufen"}}, "pt-BR": {"body": "x"}}
    return FULL | {"translations": translations}


def test_a_copy_and_its_draft_have_all_of_it(sender, alice, everything):
    page = duplicate(sender, scheduled(alice.channel, extras=everything))
    assert Draft.objects.count() == 1
    send(sender, shown_in(page) | {"channel": str(alice.channel.pk)})

    assert Notification.objects.latest("created_at").extras == everything
    assert not Draft.objects.exists()  # it was sent


def test_an_edit_leaves_it_alone(sender, alice, everything):
    notification = scheduled(alice.channel, extras=everything)

    after, _ = edited(sender, notification)
    assert (after.extras, after.edited_at) == (everything, None)
    after, _ = edited(sender, notification, body="Other text", **{"web.tag": "other"})
    assert after.extras == everything | {"web": everything["web"] | {"tag": "other"}}


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"ios.badge": "three"}, "ios"),
        ({"ios.soung": "ding"}, "ios"),
        ({"ios.sound": "a", "ios.sound.name.x": "b"}, "ios"),
        ({"web.": "x"}, "web"),
        ({"translations.german.title": "x"}, "translations"),
        ({"translations.de.actions.none": "x"}, "translations"),
        ({"actions.x": "y"}, "actions"),
        ({"actions.0.id": "a b", "actions.0.title": "A"}, "actions"),
        ({"android.color": "red"}, "android"),
        ({"ios.relevance_score": "nan"}, "ios"),
    ],
)
def test_an_error_is_told_at_its_part_of_the_form(sender, alice, typed, field):
    assert list(errors(sender, written(alice, **typed))) == [field]


@pytest.mark.parametrize(
    ("label", "id_"), [("Track it!", "track-it"), ("Größe", "groe"), ("今すぐ", "button-1")]
)
def test_a_button_without_an_id_is_named_by_its_label(sender, alice, label, id_):
    send(sender, written(alice, **{"actions.0.title": label, "actions.0.id": ""}))
    assert Notification.objects.get().content.actions == [{"id": id_, "title": label}]


def page_of(sender, house, **typed):
    return sender.post(COMPOSE, written(house, **typed) | {"step": "edit"}).content.decode()


def test_every_field_of_the_api_has_an_input(sender, alice):
    page = page_of(sender, alice, **{"actions.0.id": "buy", "add_language": "pt-BR"})

    for platform in Type.WEB, Type.ANDROID, Type.IOS:
        for name in OBJECTS[platform]:
            assert f'name="{platform.name.lower()}.{name}"' in page
    for name in ("title", "body", "url", "image", "actions.buy"):
        assert f'name="translations.pt-BR.{name}"' in page
    assert 'name="actions.2.icon"' in page


def test_every_field_is_named_in_plain_words_and_by_its_name_in_the_api_only_on_request(
    sender, alice
):
    page = page_of(sender, alice, add_language="de")
    tables = {"web": OBJECTS[Type.WEB], "ios": OBJECTS[Type.IOS], "actions.0": ACTION}
    for group, table in (tables | {"android": OBJECTS[Type.ANDROID]}).items():
        for name, field in table.items():
            assert f">{field.label}<" in page.replace("&#x27;", "'")
            assert f'title="In the API: {group}.{name}">' in page
            assert f"{group}.{name}<" not in page
    assert "even while the user wants to focus</option>" in page


def test_what_was_typed_is_shown_again(sender, alice):
    typed = {
        "web.silent": "off",
        "web.title.none": "on",
        "ios.sound.name": "ding",
        "ios.badge": "7",
    }
    page = page_of(sender, alice, **typed)

    assert '<option value="off" selected>no</option>' in page
    assert 'name="web.title.none" value="on" checked' in page
    assert 'name="ios.badge" value="7"' in page
    assert '<input type="hidden" name="ios.sound.name" value="ding">' in page


@pytest.mark.parametrize(
    ("typed", "tag"),
    [
        ("german language", None),
        ('"><script>', None),
        ("german", None),
        ("a.b", None),
        ("pt_br", "pt-BR"),
    ],
)
def test_only_a_language_is_added_in_its_canonical_form(sender, alice, typed, tag):
    page = page_of(sender, alice, add_language=typed)
    assert (f'name="translations.{tag or ""}' in page) == (tag is not None)
    assert ("Must be a language such as de or pt-BR." in page) == (tag is None)


def test_the_review_shows_buttons_languages_and_platforms(sender, alice):
    typed = TYPED | {"translations.de.title": "Brot & Butter"}
    page = sender.post(COMPOSE, written(alice, **typed) | {"step": "review"}).content.decode()

    for words in (
        "<dt>Buttons</dt><dd>Buy</dd>",
        "Brot &amp; Butter",
        "Only on Android",
        "Number on the app&#x27;s icon: 3",
    ):
        assert words in page


def test_links_into_apps_are_written_and_reviewed(sender, alice):
    typed = TYPED | {
        "actions.0.url": "https://shop.example/buy",
        "actions.0.web_url": "/buy",
        "actions.0.android_url": "myshop://buy",
        "android.url": "myshop://orders/17",
        "web.url": "/orders/17",
    }
    page = sender.post(COMPOSE, written(alice, **typed) | {"step": "review"}).content.decode()

    for words in (
        'Buy (<span class="ps-mono">https://shop.example/buy</span>)'
        ' (Web: <span class="ps-mono">/buy</span>)'
        ' (Android: <span class="ps-mono">myshop://buy</span>)</dd>',
        "Opens: myshop://orders/17",
        "Opens: /orders/17",
    ):
        assert words in page
    send(sender, written(alice, **typed))
    stored = Notification.objects.get().extras
    assert stored["android"] == {"url": "myshop://orders/17", "count": 3}
    assert stored["actions"][0]["web_url"] == "/buy"


def test_an_error_names_its_field(sender, alice):
    typed = {
        "ios.url": "javascript:alert(1)",
        "web.url": "//bob.example/",
        "actions.0.id": "buy",
        "actions.0.title": "Buy",
        "actions.0.android_url": "/buy",
        "android.count": "three",
    }
    told = {field: words[0] for field, words in errors(sender, written(alice, **typed)).items()}

    assert told["ios"].startswith("Opens: Must be an absolute http or https URL, or one of an app")
    assert told["web"].startswith("Opens: Must be an absolute http or https URL, or a path")
    assert told["actions"].startswith("Opens on Android (button 1): Must be")
    assert told["android"] == "Number on the app's icon: Must be a whole number."


def test_a_name_that_is_nested_too_deeply_is_not_read(sender, alice):
    form = written(alice, **{"web" + ".a" * 2_000: "x", "step": "review"})
    posted = urlencode(form, doseq=True)  # as browsers do; parts of a multipart body have limits
    page = sender.post(COMPOSE, posted, content_type="application/x-www-form-urlencoded")
    assert page.status_code == 200


def test_the_form_keeps_the_variants_of_a_content():
    variants = [
        {"name": "a", "weight": 1, "title": "A", "web": {"tag": "t", "silent": True, "url": None}},
        {"name": "b", "weight": 9, "translations": {"de": {"title": "B", "actions": {"x": "X"}}}},
    ]

    assert nested(flat(Content(body="x", variants=variants))) == {"variants": variants}
