import base64
import json

import pytest
from py_vapid import Vapid02

from notifications_app.delivery.webpush import vapid
from notifications_app.delivery.webpush.vapid import (
    LIFETIME,
    WINDOW,
    VapidKey,
    VapidKeyUnreadableError,
    authorization,
)
from tests.delivery.support import VAPID_KEY

ORIGIN = "https://fcm.googleapis.com"
NOW = 1_795_000_000.0


def claims(header):
    part = header.removeprefix("vapid t=").split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=="))


def test_the_token_is_signed_by_the_key_it_names():
    # py_vapid splits the header at its last blank.
    assert Vapid02.verify(authorization(VAPID_KEY, ORIGIN, NOW).replace(", k=", ",k="))


def test_the_key_in_the_header_is_the_public_half():
    own = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    assert authorization(VAPID_KEY, ORIGIN, NOW).endswith(f", k={own}")


def test_the_token_names_origin_and_sender():
    said = claims(authorization(VAPID_KEY, ORIGIN, NOW))
    assert (said["aud"], said["sub"]) == (ORIGIN, "mailto:push@example.com")


@pytest.mark.parametrize("seconds", [0, 1, WINDOW - 1, WINDOW, 20_000])
def test_the_token_ends_hours_from_now_and_within_a_day(seconds):
    left = claims(authorization(VAPID_KEY, ORIGIN, NOW + seconds))["exp"] - (NOW + seconds)
    assert LIFETIME - WINDOW < left <= LIFETIME < 24 * 3_600


def test_a_process_that_starts_later_presents_the_same_token():
    begin = NOW // WINDOW * WINDOW
    first = authorization(VAPID_KEY, ORIGIN, begin)
    vapid._signed.cache_clear()
    assert authorization(VAPID_KEY, ORIGIN, begin + WINDOW - 1) == first
    assert authorization(VAPID_KEY, ORIGIN, begin + WINDOW) != first


def test_each_origin_key_and_subject_has_its_own_token():
    other_key = VapidKey("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", VAPID_KEY.subject)
    other_subject = VapidKey(VAPID_KEY.private_key, "mailto:other@example.com")
    headers = {
        authorization(VAPID_KEY, ORIGIN, NOW),
        authorization(VAPID_KEY, "https://web.push.apple.com", NOW),
        authorization(other_key, ORIGIN, NOW),
        authorization(other_subject, ORIGIN, NOW),
    }
    assert len(headers) == 4


@pytest.mark.parametrize("text", ["", "x", "AAAA", "A" * 43, "_" * 43, "ü" * 43, "A" * 86])
def test_an_invalid_key_is_unreadable(text):
    with pytest.raises(VapidKeyUnreadableError):
        authorization(VapidKey(text, "mailto:push@example.com"), ORIGIN, NOW)


def test_the_repr_does_not_show_the_private_key():
    assert VAPID_KEY.private_key not in repr(VAPID_KEY)
