"""The language of the console is its reader's; all else is English."""

import importlib.util
import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from channels_app.models import Channel
from notifications_app.models import HourlyStat
from notifications_app.reporting.attention import attention
from pushsvc.common.console import figures
from tests.admin.notifications.composing import written
from tests.admin.support import fill_hours, signed_in
from tests.api.support import owner_of
from tests.factories import (
    add_subscription,
    make_draft,
    make_notification,
    make_sent_notification,
    make_template,
)

CHECKOUT = Path(__file__).resolve().parents[3]
CATALOGS = sorted(CHECKOUT.glob("pushsvc/locale/*/LC_MESSAGES/django.po"))
STYLES = sorted(CHECKOUT.glob("pushsvc/static/console/*.css"))
COMPOSE = reverse("admin:notification_compose")
ZONE = reverse("admin:time_zone")
GERMAN = {"accept-language": "de-AT,de;q=0.9"}
PLACEHOLDER = re.compile(r"%\(\w+\)s|%%|\{\w*[^{}]*\}|</?\w+")


def texts():
    spec = importlib.util.spec_from_file_location("texts", CHECKOUT / ".ci/texts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_of(client, address="/admin/", **headers):
    response = client.get(address, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize(
    ("header", "root"),
    [
        ("de-AT,de;q=0.9", '<html lang="de" dir="ltr"'),
        ("ar,en;q=0.5", '<html lang="ar" dir="rtl"'),
        ("tlh", '<html lang="en" dir="ltr"'),
    ],
)
def test_a_page_follows_the_browser(viewer, header, root):
    assert root in page_of(viewer, **{"accept-language": header})


def test_the_readers_choice_precedes_the_browser_until_it_is_taken_back(viewer):
    answer = viewer.post(ZONE, {"language": "ar", "zone": ""}, headers=GERMAN)

    assert answer.cookies["language"]["httponly"]
    assert '<html lang="ar" dir="rtl"' in page_of(viewer, ZONE, **GERMAN)
    viewer.post(ZONE, {"language": "xx", "zone": ""}, headers=GERMAN)
    assert '<html lang="de" dir="ltr"' in page_of(viewer, ZONE, **GERMAN)


def test_findings_are_in_the_readers_language_and_for_others_in_english(viewer, alice):
    make_sent_notification(
        alice.channel, status="pending", scheduled_at=timezone.now() - timedelta(minutes=90)
    )
    fill_hours(alice.channel, days=1)
    HourlyStat.objects.filter(platform="web").update(bounced=12_345)

    german = unescape(page_of(viewer, **GERMAN))
    english = {each.title for each in attention(Channel.objects.all(), now=timezone.now())}

    assert "Benachrichtigungen mit verspätetem" in german
    assert "1 h 30 min fällig. Der Planer" in german
    assert re.search(r"[1-9]\d*\.\d{3} waren in den letzten 24 Stunden unzustellbar", german)
    assert "Notifications that are late to start: 1" in english


def test_the_next_request_of_the_thread_is_english_again(viewer):
    page_of(viewer, **GERMAN)

    assert translation.get_language() == "en"
    assert '<html lang="en"' in page_of(viewer)


@pytest.mark.parametrize(
    ("path", "body"),
    [("/subscribe", {"platform": "pager"}), ("/subscribe", {}), ("/send-notification", {})],
)
def test_the_api_answers_the_same_in_every_language(alice, path, body):
    answers = [
        Client().post(
            path,
            body,
            content_type="application/json",
            headers={"x-channel-id": str(alice.channel.pk), **headers},
        )
        for headers in ({}, {**GERMAN, "cookie": "language=de"})
    ]

    english, german = answers
    assert english.status_code in {400, 401}
    assert german.status_code == english.status_code
    assert german.json() | {"request_id": ""} == english.json() | {"request_id": ""}


@pytest.mark.parametrize(
    ("name", "german", "english"),
    [
        (
            "Taken",
            "Eine andere Vorlage des Kanals hat diesen Namen.",
            "Another template of the channel has this name.",
        ),
        (" ", "Muss 1 bis 100 Zeichen haben.", "Must have 1 to 100 characters."),
    ],
)
def test_a_services_error_is_in_the_readers_language_and_over_the_api_in_english(
    alice, name, german, english
):
    make_template(alice.channel, "Taken")
    form = written(alice, name=name)
    reader = signed_in(alice.members["owner"])

    page = reader.post(reverse("admin:template_new", args=[alice.channel.pk]), form, headers=GERMAN)
    answer = owner_of(alice.channel).call(
        "POST",
        f"/channel/{alice.channel.pk}/templates",
        {"name": name, "content": {"body": "It left."}},
        **GERMAN,
        cookie="language=de",
    )

    assert german in page.content.decode()
    assert english in answer.json()["detail"]


def test_the_conflict_about_a_draft_is_in_the_readers_language(alice):
    draft = make_draft(alice.channel, alice.members["editor"])
    form = written(alice) | {"draft": str(draft.pk), "version": "9"}

    answer = signed_in(alice.members["owner"]).post(
        reverse("admin:draft_save"), form, headers=GERMAN
    )

    assert "alice-editor hat diesen Entwurf geändert." in answer.json()["detail"]


def test_what_only_serializers_check_is_in_the_readers_language_and_over_the_api_in_english(alice):
    reader = signed_in(alice.members["owner"])

    page = reader.post(COMPOSE, written(alice, labels="x" * 200), headers=GERMAN)
    answer = owner_of(alice.channel).send(
        {"body": "It left.", "labels": ["x" * 200]}, **GERMAN, cookie="language=de"
    )

    assert "Darf höchstens 50 Zeichen haben." in page.content.decode()
    assert answer.json()["errors"][0]["detail"] == "Must be at most 50 characters long."


def test_reasons_of_refused_rows_are_in_the_readers_language_and_over_the_api_in_english(alice):
    Channel.objects.filter(pk=alice.channel.pk).update(ios_enabled=True)
    rows, query = "platform,token,language\nios,none,\nios,ab,\n", "format=tokens_csv"
    page = f"{reverse('admin:subscribers_import_part', args=[alice.channel.pk])}?{query}"
    api = f"/channel/{alice.channel.pk}/subscriptions/import?{query}"
    csv = {"content_type": "text/csv"}

    german = signed_in(alice.members["owner"]).post(page, rows, **csv, headers=GERMAN)
    key = {"authorization": f"Key {owner_of(alice.channel).key}"}
    english = Client().post(api, rows, **csv, headers={**GERMAN, "cookie": "language=de", **key})

    (own, _), (same, _) = (each.json()["refusals"] for each in (german, english))
    assert own["detail"].startswith("Muss 32 bis 200 hexadezimale Ziffern haben.")
    assert same["detail"] == _TOKEN
    assert same["code"] == own["code"]


_TOKEN = "Must be 32 to 200 hexadecimal digits. An FCM token of an iOS app is no APNs token."


def test_why_answers_in_the_readers_language_and_over_the_api_in_english(alice):
    rule = {"attribute": "plan", "operator": "starts_with", "value": "pro"}
    one = make_notification(alice.channel, rule=rule, category="offers")
    device = add_subscription(alice.channel, {"plan": "free"}, choices={"offers": False})
    why = reverse("admin:notification_why", args=[alice.channel.pk])
    asked = {"notification": str(one.pk), "who": str(device.pk)}

    page = signed_in(alice.members["viewer"]).post(why, asked, headers=GERMAN).content.decode()
    answer = owner_of(alice.channel).call(
        "POST",
        f"/channel/{alice.channel.pk}/explain",
        {"notification_id": str(one.pk), "subscription_id": str(device.pk)},
        **GERMAN,
        cookie="language=de",
    )

    assert (
        "plan ist &quot;free&quot;; die Regel verlangt: einen Text, der mit &quot;pro&quot; beginnt"
        in page
    )
    assert "Das Gerät hat die Kategorie offers abgelehnt." in page
    details = {each["step"]: each["detail"] for each in answer.json()["devices"][0]["steps"]}
    assert details["audience"] == 'plan is "free"; the rule wants a text that starts with "pro"'
    assert details["category"] == "The device refused the category offers."


def test_columns_and_entries_of_lists_are_in_the_readers_language(alice):
    make_sent_notification(alice.channel)
    owner = signed_in(alice.members["owner"])
    owner.post(reverse("admin:template_new", args=[alice.channel.pk]), written(alice, name="New"))

    sent = page_of(owner, reverse("admin:notifications_app_notification_changelist"), **GERMAN)
    log = page_of(owner, reverse("admin:auditlog_logentry_changelist"), **GERMAN)

    assert 'data-label="Kanal"' in sent
    assert 'data-label="Channel"' not in sent
    assert re.search(r"ps-badge[^>]*>angelegt<", log)


def test_the_review_names_the_urgency_as_the_form_does(alice):
    form = written(alice, urgency="high") | {"step": "review"}

    page = signed_in(alice.members["sender"]).post(COMPOSE, form, headers=GERMAN).content.decode()

    assert "<dd>Hoch: auch bei niedrigem Akkustand</dd>" in page


def test_what_the_form_keeps_between_readers_is_kept_for_each_language(alice):
    sender = signed_in(alice.members["sender"])

    english, german = page_of(sender, COMPOSE), page_of(sender, COMPOSE, **GERMAN)

    assert ">Often used<" in english
    assert ">Oft verwendet<" in german
    assert '<option value="minutes">Minuten</option>' in german


@pytest.mark.parametrize(
    ("language", "words"), [("en", "2 h 5 min"), ("de", "2 h 5 min"), ("ar", "2 س 5 د")]
)
def test_durations_are_in_units_of_the_language(language, words):
    with translation.override(language):
        assert figures.duration(7500) == words


def test_an_unknown_page_is_in_the_readers_language(viewer):
    answer = viewer.get("/admin/no-such-page/", headers=GERMAN)

    assert (answer.status_code, "Seite nicht gefunden" in answer.content.decode()) == (404, True)


@pytest.mark.parametrize(
    ("language", "written"),
    [("de", ("1.234.567", "+1.234", "12,3 %")), ("ar", ("1,234,567", "+1,234", "12.3 %"))],
)
def test_figures_follow_the_language_but_not_widths(language, written):
    with translation.override(language):
        shown = figures.grouped(1234567), figures.signed(1234), figures.percent(0.1234)
        assert shown == written
        assert figures.width(0.1234) == "12.34%"


def test_what_scripts_and_styles_read_is_the_same_in_every_language(alice):
    """A German `1,5` would end a width, and a number in JSON."""
    fill_hours(alice.channel, days=8)
    sent = make_sent_notification(alice.channel)
    reader = signed_in(alice.members["owner"])
    page = reverse("admin:notifications_app_notification_change", args=[sent.pk])

    english, german = (
        re.findall(r'style="[^"]*"|aria-valuenow="[^"]*"', page_of(reader, page, **headers))
        for headers in ({}, GERMAN)
    )
    assert any("width:" in each for each in english)
    assert german == english


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.name)
def test_styles_contain_no_words(path):
    """Nobody would translate them."""
    assert re.findall(r'content: "[^"]*[A-Za-z]{2}[^"]*"', path.read_text()) == []


@pytest.mark.parametrize("path", CATALOGS, ids=lambda path: path.parent.parent.name)
def test_translations_keep_the_values_and_the_markup_of_their_texts(path):
    _, translations = texts().read_po(path)
    wrong = [
        (text.one, given)
        for text, forms in translations.items()
        for given in filter(None, forms)
        if not set(PLACEHOLDER.findall(given)) <= set(PLACEHOLDER.findall(text.one + text.several))
        or (
            not text.several
            and set(PLACEHOLDER.findall(given)) != set(PLACEHOLDER.findall(text.one))
        )
        or ('"' in given and '"' not in text.one)
    ]

    assert len(translations) > 1_000
    assert wrong == []


@pytest.mark.parametrize("path", CATALOGS, ids=lambda path: path.parent.parent.name)
def test_the_compiled_translations_are_those_of_the_text(path):
    head, translations = texts().read_po(path)

    assert path.with_suffix(".mo").read_bytes() == texts().mo_of(head, translations)
