import time

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from notifications_app.delivery.client import PayloadTooLargeError
from notifications_app.delivery.webpush.transport import (
    MAX_PAYLOAD,
    BadKeysError,
    build_request,
    encrypt,
    payload,
)
from pushsvc.common import base64url
from pushsvc.common.endpoints import check_endpoint
from tests.delivery.support import Browser, make_message

FCM = "https://fcm.googleapis.com/fcm/send/abc:DEF"
APPLE = "https://web.push.apple.com/QGuQ"
WNS = "https://wns2-par02p.notify.windows.com/w/?token=BQ%2bY%3d"


def request(message, url=FCM, browser=None, now=None):
    endpoint = check_endpoint(url, trusted_origins=frozenset(), allowed_hosts=())
    destination = (browser or Browser()).destination(url)
    return build_request(
        message, destination, endpoint, "vapid t=a, k=b", time.monotonic() if now is None else now
    )


class TestRFC8291AppendixA:
    plaintext = b"When I grow up, I want to be a watermelon"
    sender_private = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
    receiver_private = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
    receiver_public = (
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    )
    auth = "BTBZMqHH6r4Tts7J_aSIgg"
    salt = "DGv6ra1nlYgDCS1FRnbzlw"
    body = (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmY"
        "WAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexS"
        "gSxsj_Qulcy4a-fN"
    )

    def private(self, text):
        return ec.derive_private_key(int.from_bytes(base64url.decode(text), "big"), ec.SECP256R1())

    def test_our_body_equals_the_example_with_its_key_and_salt(self, monkeypatch):
        destination = Browser().destination(FCM, p256dh=self.receiver_public, auth=self.auth)
        sender, salt = self.private(self.sender_private), base64url.decode(self.salt)
        monkeypatch.setattr("pywebpush.ec.generate_private_key", lambda *_: sender)
        monkeypatch.setattr("http_ece.os.urandom", lambda _: salt)
        assert base64url.encode(encrypt(self.plaintext, destination)) == self.body

    def test_the_examples_receiver_decrypts_our_body(self):
        destination = Browser().destination(FCM, p256dh=self.receiver_public, auth=self.auth)
        assert self.read(encrypt(b"melon", destination)) == b"melon"
        assert self.read(base64url.decode(self.body)) == self.plaintext

    def read(self, body):
        return http_ece.decrypt(
            body,
            private_key=self.private(self.receiver_private),
            auth_secret=base64url.decode(self.auth),
            version="aes128gcm",
        )


def test_the_browser_reads_buttons_and_the_options_of_its_notification():
    browser = Browser()
    actions = [{"id": "buy", "title": "Buy", "url": "https://e.example/buy"}]
    web = {
        "badge": "https://e.example/badge.png", "require_interaction": True, "silent": False,
        "renotify": True, "tag": "score-991", "lang": "de", "dir": "auto",
    }  # fmt: skip

    read = browser.read(request(make_message(actions=actions, web=web), browser=browser).body)

    assert read["actions"] == actions
    assert read["options"] == {
        "badge": "https://e.example/badge.png",
        "requireInteraction": True,
        "silent": False,
        "renotify": True,
        "tag": "score-991",
        "lang": "de",
        "dir": "auto",
    }


def test_the_browser_reads_every_given_field():
    browser = Browser()
    message = make_message(
        icon="https://e.example/i.png",
        url="https://e.example/",
        image="https://e.example/b.png",
        data={"order": "7"},
    )
    assert browser.read(request(message, browser=browser).body) == {
        "notification_id": str(message.notification_id),
        "title": "Rain",
        "body": "It rains.",
        "icon": "https://e.example/i.png",
        "url": "https://e.example/",
        "image": "https://e.example/b.png",
        "data": {"order": "7"},
        "token": "tracking-token",
    }


def test_omitted_content_is_left_out():
    message = make_message(title="")
    assert payload(message, "t").decode() == (
        f'{{"notification_id":"{message.notification_id}","body":"It rains.","token":"t"}}'
    )


def test_text_of_all_scripts_is_sent_as_utf_8():
    assert "Regen ☔ 雨".encode() in payload(make_message(body="Regen ☔ 雨"), "t")


def test_the_largest_payload_makes_one_record_of_4096_bytes():
    browser = Browser()
    body = encrypt(b"x" * MAX_PAYLOAD, browser.destination(FCM))
    assert len(body) == 4_096
    assert browser.decrypt(body) == b"x" * MAX_PAYLOAD


def test_a_payload_one_byte_over_the_limit_is_refused():
    with pytest.raises(PayloadTooLargeError):
        encrypt(b"x" * (MAX_PAYLOAD + 1), Browser().destination(FCM))


def test_no_two_bodies_share_salt_or_key():
    destination = Browser().destination(FCM)
    bodies = [encrypt(b"x", destination) for _ in range(5)]
    assert len({body[:16] for body in bodies}) == 5
    assert len({body[21:86] for body in bodies}) == 5


def test_keys_with_padding_and_in_the_standard_alphabet_are_read():
    browser = Browser()
    plain = browser.destination(FCM)
    padded = browser.destination(FCM, p256dh=f"{plain.p256dh}=", auth=f"{plain.auth}==")
    assert browser.decrypt(encrypt(b"x", padded)) == b"x"


@pytest.mark.parametrize(
    "keys",
    [
        {"p256dh": ""},
        {"auth": ""},
        {"p256dh": base64url.encode(b"\x04" + b"\x01" * 64)},
        {"p256dh": base64url.encode(b"\x04" * 64)},
        {"p256dh": base64url.encode(b"\x02" + b"\x01" * 32)},
        {"p256dh": "ü"},
        {"auth": base64url.encode(b"x" * 8)},
        {"auth": base64url.encode(b"x" * 17)},
        {"auth": "A"},
    ],
)
def test_invalid_keys_are_refused(keys):
    with pytest.raises(BadKeysError):
        encrypt(b"x", Browser().destination(FCM, **keys))


def test_the_headers_are_those_of_rfc_8030_8188_and_8292():
    assert request(make_message(expires_at=10.0), now=4.5).headers == {
        "Authorization": "vapid t=a, k=b",
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": "6",
        "Urgency": "normal",
    }


@pytest.mark.parametrize(
    ("url", "ttl", "left", "header"),
    [
        (FCM, 3_600, 3_599.1, "3600"),
        (FCM, 3_600, 3_599.0, "3599"),
        (FCM, 3_600, 0.2, "1"),
        (FCM, 3_600, -5.0, "1"),
        (FCM, 0, 3_600.0, "0"),
        (APPLE, 2_419_200, 2_419_200.0, "2419200"),
        (WNS, 0, 3_600.0, "60"),
        (WNS, 3_600, 3.0, "60"),
        (WNS, 3_600, 61.0, "61"),
    ],
)
def test_ttl_is_the_seconds_left_rounded_up(url, ttl, left, header):
    message = make_message(ttl=ttl, expires_at=100.0 + left)
    assert request(message, url, now=100.0).headers["TTL"] == header


@pytest.mark.parametrize("urgency", ["very-low", "low", "normal", "high"])
def test_the_urgency_is_passed_on(urgency):
    assert request(make_message(urgency=urgency)).headers["Urgency"] == urgency


@pytest.mark.parametrize("url", [FCM, APPLE, WNS])
def test_a_topic_is_passed_on(url):
    assert request(make_message(topic="goal"), url).headers["Topic"] == "goal"


@pytest.mark.parametrize("topic", ["score", "s", "x" * 29])
def test_a_topic_that_apple_refuses_is_replaced_for_apple_by_a_decodable_one(topic):
    sent = request(make_message(topic=topic), APPLE).headers["Topic"]
    assert len(base64url.decode(sent)) == 24
    assert request(make_message(topic=topic), APPLE).headers["Topic"] == sent
    assert request(make_message(topic=topic), FCM).headers["Topic"] == topic


def test_the_repr_of_requests_and_targets_shows_no_secret():
    destination = Browser().destination(FCM)
    shown = repr(destination) + repr(request(make_message()))
    for secret in (FCM, destination.p256dh, destination.auth, destination.token, "vapid t="):
        assert secret not in shown
