"""Devices that tell their time zone and language."""

import pytest

from tests.api.devices import HERE, expire, subscribed
from tests.api.support import errors
from tests.factories import browser

pytestmark = pytest.mark.django_db


def test_a_device_tells_its_time_zone_and_language(alice):
    body = browser(HERE, timezone="Europe/Berlin", language="DE-at")
    row = subscribed(alice, body)
    assert (row.timezone, row.language, row.timezone_changed_at) == ("Europe/Berlin", "de-AT", None)

    silent = {name: body[name] for name in ("endpoint", "keys")}
    row = subscribed(alice, silent, status=200)
    assert (row.timezone, row.language) == ("Europe/Berlin", "de-AT")
    row = subscribed(alice, body | {"timezone": "europe/berlin"}, status=200)
    assert row.timezone_changed_at is None
    row = subscribed(alice, body | {"timezone": "Asia/Tokyo"}, status=200)
    assert row.timezone == "Asia/Tokyo"
    assert row.timezone_changed_at is not None
    before = row.timezone_changed_at
    expire(row)
    row = subscribed(alice, body, status=200)
    assert row.timezone_changed_at > before


@pytest.mark.parametrize(
    ("timezone", "stored"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("America/ARGENTINA/ushuaia", "America/Argentina/Ushuaia"),
        ("Europe/Kiev", "Europe/Kiev"),  # an older name, which tzdata keeps
        ("utc", "UTC"),
        ("GMT+02:00", "Etc/GMT-2"),  # Android's
        ("GMT-0500", "Etc/GMT+5"),  # of iOS
        ("+09:00", "Etc/GMT-9"),  # of browsers on a machine without a zone
    ],
)
def test_a_time_zone_is_stored_in_the_spelling_of_tzdata(alice, timezone, stored):
    assert subscribed(alice, browser(HERE, timezone=timezone)).timezone == stored


@pytest.mark.parametrize(
    ("language", "stored"),
    [
        ("pt_BR", "pt-BR"),
        ("zh_Hant_TW", "zh-Hant-TW"),
        ("en-us", "en-US"),
        ("zh_TW_#Hant", "zh-Hant-TW"),
        ("pt_BR.UTF-8", "pt-BR"),
        ("iw_IL", "he-IL"),
        ("deu", "de"),
        ("fre_CA", "fr-CA"),
        ("cmn-Hans-CN", "zh-Hans-CN"),
        ("gsw-CH", "gsw-CH"),  # no code of two letters
        ("en-a-bbb-x-us", "en-a-bbb-x-us"),
    ],
)
def test_a_language_is_stored_in_its_canonical_form(alice, language, stored):
    assert subscribed(alice, browser(HERE, language=language)).language == stored


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"timezone": "Mars/Olympus"}, ("timezone", "not_a_timezone")),
        ({"timezone": "GMT+05:30"}, ("timezone", "not_a_timezone")),
        ({"timezone": "../../etc/passwd"}, ("timezone", "not_a_timezone")),
        ({"timezone": 2}, ("timezone", "not_a_string")),
        ({"language": "x" * 36}, ("language", "not_a_language")),
        ({"language": "not a language"}, ("language", "not_a_language")),
        ({"language": "german"}, ("language", "not_a_language")),
        ({"language": "undefined"}, ("language", "not_a_language")),
        ({"language": ["de"]}, ("language", "not_a_string")),
    ],
)
def test_what_cannot_be_understood_is_refused_and_erases_nothing(alice, given, error):
    body = browser(HERE, timezone="Europe/Berlin", language="de")
    row = subscribed(alice, body)

    assert errors(alice.subscribe(body | given)) == [error]

    row.refresh_from_db()
    assert (row.timezone, row.language) == ("Europe/Berlin", "de")


@pytest.mark.parametrize(
    "unknown",
    [
        {"timezone": None, "language": None},
        {"timezone": "", "language": ""},
        {"timezone": "Etc/Unknown", "language": "und"},
        {"timezone": "etc/unknown", "language": "UND"},
        {"language": "und-US"},
        {"language": "und_Latn"},
    ],
)
def test_what_a_browser_does_not_know_erases_nothing(alice, unknown):
    body = browser(HERE, timezone="Europe/Berlin", language="de")
    subscribed(alice, body)

    row = subscribed(alice, body | unknown, status=200)

    assert (row.timezone, row.language) == ("Europe/Berlin", "de")
