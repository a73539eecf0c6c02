"""The Python client's check of webhooks, against requests that the library of Standard Webhooks
signs."""

from datetime import timedelta

import pytest

from pushsvc_client import InvalidWebhook, Webhook, verify_webhook
from tests.clients.webhooks import BODY, OTHER, SAID, SECRET, signed


def test_a_signed_request_is_read():
    assert verify_webhook(BODY, signed(SECRET), SECRET) == Webhook(
        "msg_1", "notification.finished", "2026-05-04T12:00:00Z", SAID["data"]
    )


def test_header_names_ignore_case():
    headers = {name.title(): value for name, value in signed(SECRET).items()}

    assert verify_webhook(BODY, headers, SECRET).id == "msg_1"


@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_the_old_and_the_new_secret_are_accepted_during_a_rotation(secret):
    assert verify_webhook(BODY, signed(SECRET, OTHER), secret).id == "msg_1"


@pytest.mark.parametrize("age", [timedelta(minutes=-4), timedelta(minutes=4)])
def test_clocks_may_differ_by_minutes(age):
    assert verify_webhook(BODY, signed(SECRET, age=age), SECRET).id == "msg_1"


@pytest.mark.parametrize("age", [timedelta(minutes=-6), timedelta(minutes=6)])
def test_a_request_of_another_time_is_rejected(age):
    with pytest.raises(InvalidWebhook, match="five minutes"):
        verify_webhook(BODY, signed(SECRET, age=age), SECRET)


def test_a_signature_of_another_secret_is_rejected():
    with pytest.raises(InvalidWebhook, match="signature"):
        verify_webhook(BODY, signed(OTHER), SECRET)


@pytest.mark.parametrize("body", [BODY + b" ", b"", b"\xff\xfe"])
def test_a_changed_body_is_rejected(body):
    with pytest.raises(InvalidWebhook, match="signature"):
        verify_webhook(body, signed(SECRET), SECRET)


def test_an_old_request_does_not_become_new_by_its_header():
    old, new = signed(SECRET, age=timedelta(minutes=6)), signed(SECRET)

    with pytest.raises(InvalidWebhook, match="signature"):
        verify_webhook(BODY, old | {"webhook-timestamp": new["webhook-timestamp"]}, SECRET)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize(
    "value", [None, "", "x", "v1,", "v1,ü", "v1,\udcff", "nan", "-1", "9" * 5000, "٣"]
)
def test_a_malformed_header_is_rejected_like_a_forged_one(name, value):
    headers = {**signed(SECRET), name: value}
    if value is None:
        del headers[name]

    with pytest.raises(InvalidWebhook):
        verify_webhook(BODY, headers, SECRET)


def test_a_signature_of_another_version_does_not_count():
    headers = signed(SECRET)
    headers["webhook-signature"] = headers["webhook-signature"].replace("v1,", "v2,")

    with pytest.raises(InvalidWebhook, match="signature"):
        verify_webhook(BODY, headers, SECRET)


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b"{}", b'"text"', b'{"type": "x", "data": {}}'])
def test_a_signed_body_that_is_not_an_event_is_rejected(body):
    with pytest.raises(InvalidWebhook, match="no event"):
        verify_webhook(body, signed(SECRET, body=body), SECRET)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_not base64"])
def test_a_secret_that_cannot_be_one_is_a_mistake_of_the_receiver(secret):
    with pytest.raises(ValueError):  # noqa: PT011 (base64 has words of its own)
        verify_webhook(BODY, signed(SECRET), secret)
