"""POST /send-notification: texts in several languages."""

import pytest

from notifications_app.models import Notification
from tests.api.support import accepted, errors

pytestmark = pytest.mark.django_db
URL = "https://shop.example/"
ACTIONS = [{"id": "buy", "title": "Buy"}]
TRANSLATIONS = {
    "de": {"title": "Brot", "body": "Frisches Brot", "url": f"{URL}de", "image": f"{URL}de.png"},
    "pt-BR": {"body": "Pão fresco", "actions": {"buy": "Comprar"}},
    "zh-Hant-TW": {},
}


def send(owner, **fields):
    return owner.send({"body": "Fresh bread"} | fields)


def test_translations_and_the_language_of_texts_become_canonical(alice):
    given = {"pt_BR": {"body": "Pão"}, "zh_hant_tw": {}, "iw": {"title": "x"}}

    row = accepted(alice, {"body": "x", "translations": given, "web": {"lang": "de_at"}})

    stored = {"pt-BR": {"body": "Pão"}, "zh-Hant-TW": {}, "he": {"title": "x"}}
    content = alice.call("GET", f"/notification/{row.id}/details").json()["content"]
    assert (content["translations"], content["web"]) == (stored, {"lang": "de-AT"})


@pytest.mark.parametrize(
    ("translations", "attr", "code"),
    [
        ({"german_": {}}, "translations.german_", "not_a_language"),
        ({"german": {}}, "translations.german", "not_a_language"),
        ({"pt_BR": {}, "pt-br": {}}, "translations.pt-br", "given_twice"),
        ({"iw": {}, "he": {}}, "translations.he", "given_twice"),
        ({"en-" + "x" * 33: {}}, "translations.en-" + "x" * 33, "not_a_language"),
        ({"de-AT": {}, "de-at": {}}, "translations.de-at", "given_twice"),
        ({"de": {"heading": "x"}}, "translations.de.heading", "unknown_field"),
        ({"de": {"body": ""}}, "translations.de.body", "blank"),
        ({"de": {"title": "x" * 101}}, "translations.de.title", "too_long"),
        ({"de": {"url": "/de"}}, "translations.de.url", "not_a_url"),
        ({"de": "Brot"}, "translations.de", "not_an_object"),
        ({"de": {"actions": {"buy": "K" * 51}}}, "translations.de.actions.buy", "too_long"),
        ({"de": {"actions": {"sell": "x"}}}, "translations.de.actions.sell", "unknown_field"),
        ({"de": {"actions": []}}, "translations.de.actions", "not_an_object"),
        ({f"de-x-{number}": {} for number in range(31)}, "translations", "too_many"),
        ([], "translations", "not_an_object"),
    ],
)
def test_an_error_is_named_with_its_language(alice, translations, attr, code):
    refused = send(alice, actions=ACTIONS, translations=translations)

    assert errors(refused) == [(attr, code)]
    assert not Notification.objects.exists()


@pytest.mark.parametrize("dry_run", [False, True])
def test_each_languages_payload_is_checked(alice, dry_run):
    data = {"k": "x" * 3_600}
    assert send(alice, data=data, dry_run=dry_run).status_code in {200, 202}
    long = {"de": {"title": "Brot", "body": "Ä" * 255}, "fr": {"body": "court"}}

    refused = send(alice, data=data, translations=long, dry_run=dry_run)

    assert errors(refused) == [("translations.de.body", "payload_too_large")]


def test_a_dry_run_tells_the_size_of_the_largest_language(alice):
    def size(**fields):
        return send(alice, dry_run=True, **fields).json()["platforms"]["web"]["payload_bytes"]

    plain = size()
    more = {"de": {"body": "Fresh bread" + "!" * 50}, "fr": {"body": "x"}}
    assert size(translations=more) == plain + 50


def test_an_edit_changes_the_languages(alice):
    at = "2999-01-01T00:00:00Z"
    row = accepted(
        alice, {"body": "x", "scheduled_at": at, "translations": TRANSLATIONS | {"pt-BR": {}}}
    )
    edited = alice.call("PATCH", f"/notification/{row.id}", {"translations": {"fr": {"body": "y"}}})
    assert edited.status_code == 200
    row.refresh_from_db()
    assert row.extras == {"translations": {"fr": {"body": "y"}}}
