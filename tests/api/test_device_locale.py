"""Devices that tell their time zone and language."""

import pytest

from tests.api.devices import HERE, expire, subscribed
from tests.factories import browser

pytestmark = pytest.mark.django_db


def test_a_device_tells_its_time_zone_and_language(alice):
    body = browser(HERE, timezone="Europe/Berlin", language="DE-at")
    row = subscribed(alice, body)
    assert (row.timezone, row.language, row.timezone_changed_at) == ("Europe/Berlin", "de-AT", None)

    silent = {name: body[name] for name in ("endpoint", "keys")}
    row = subscribed(alice, silent, status=200)
    assert (row.timezone, row.language) == ("Europe/Berlin", "de-AT")
    row = subscribed(alice, body, status=200)
    assert row.timezone_changed_at is None
    row = subscribed(alice, body | {"timezone": "Asia/Tokyo", "language": None}, status=200)
    assert (row.timezone, row.language) == ("Asia/Tokyo", "")
    assert row.timezone_changed_at is not None
    before = row.timezone_changed_at
    expire(row)
    row = subscribed(alice, body, status=200)
    assert row.timezone_changed_at > before


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"timezone": "Mars/Olympus", "language": "x" * 36}, ("", "")),
        ({"timezone": "", "language": "not a language"}, ("", "")),
        ({"timezone": "../../etc/passwd", "language": "ZH-hant-tw"}, ("", "zh-Hant-TW")),
        ({"timezone": "America/Argentina/Ushuaia", "language": "en-a-bbb-x-us"}, None),
    ],
)
def test_what_is_unknown_or_malformed_is_stored_as_none(alice, given, stored):
    row = subscribed(alice, browser(HERE, **given))
    assert (row.timezone, row.language) == (stored or tuple(given.values()))
