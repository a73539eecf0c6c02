"""GET /channel/:id, GET /web-push-key, and how channels are created."""

import base64
import json

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric import ec
from django.db import transaction
from django.test import Client

from channels_app.counters import counter_add
from channels_app.models import Channel, ChannelCounter, VapidKey
from channels_app.selectors import vapid_private_keys
from channels_app.services import channel_create, vapid_key_rotate
from pushsvc.common.errors import Invalid
from pushsvc.common.store.crypto import SecretUnreadable
from tests.api.support import NOWHERE, NOWHERE_BARE, anonymous, code, owner_of
from tests.factories import browser, make_channel
from tests.pipeline.support import in_threads

pytestmark = pytest.mark.django_db


def test_the_statistics_of_a_new_channel_are_zeros_in_the_documented_order(alice):
    response = alice.call("GET", f"/channel/{alice.channel.id}")

    created_at = alice.channel.created_at.isoformat(timespec="milliseconds")
    assert response.content.decode() == json.dumps(
        {
            "channel_info": {
                "channel_id": str(alice.channel.id),
                "name": "Alice's shop",
                "created_at": created_at.replace("+00:00", "Z"),
                "platforms": {"web": True, "android": False, "ios": False},
            },
            "subscriber_count": 0,
            "notification_stats": {
                "total_notifications_sent": 0,
                "total_recipients": 0,
                "total_delivered": 0,
                "total_bounced": 0,
                "total_clicked": 0,
            },
        },
        separators=(",", ":"),
    )


def test_a_channel_id_is_read_in_either_case_and_written_in_lower_case(alice):
    response = alice.call("GET", f"/channel/{str(alice.channel.id).upper()}")

    assert response.json()["channel_info"]["channel_id"] == str(alice.channel.id)


def test_the_error_for_a_key_of_another_channel_does_not_reveal_whether_the_id_exists(alice, bob):
    responses = [alice.call("GET", f"/channel/{each}") for each in (bob.channel.id, NOWHERE)]

    assert [code(each, 404) for each in responses] == ["channel_not_found"] * 2
    assert anonymous(responses[0]) == anonymous(responses[1])
    assert "key" in anonymous(responses[0])["detail"]


def test_totals_count_only_their_own_channel(alice, bob):
    counter_add(alice.channel.id, web_subscribers=5, recipients=9, delivered=7, bounced=2)
    counter_add(alice.channel.id, web_subscribers=-1, ios_subscribers=2, notifications_sent=1)
    counter_add(alice.channel.id, clicked=3, delivered=0)
    counter_add(bob.channel.id, web_subscribers=100, clicked=100)

    response = alice.call("GET", f"/channel/{alice.channel.id}").json()

    assert response["subscriber_count"] == 6
    assert list(response["notification_stats"].values()) == [1, 9, 7, 2, 3]


@pytest.mark.django_db(transaction=True)
def test_concurrent_additions_to_a_counter_are_all_counted():
    alice, bob = (owner_of(make_channel(name)) for name in ("Alice's shop", "Bob's blog"))

    def count():
        for _ in range(20):
            counter_add(alice.channel.id, web_subscribers=1)
            counter_add(bob.channel.id, web_subscribers=2)

    in_threads(*[count] * 4)

    for owner, total in ((alice, 80), (bob, 160)):
        response = owner.call("GET", f"/channel/{owner.channel.id}").json()
        assert response["subscriber_count"] == total


@pytest.mark.django_db(transaction=True)
def test_each_connection_adds_to_its_own_shard_and_a_transaction_to_one():
    channel = make_channel()
    rows = ChannelCounter.objects.filter(channel=channel)

    with transaction.atomic():
        for _ in range(20):
            counter_add(channel.id, clicked=1)
    assert rows.count() == 1

    in_threads(*[lambda: counter_add(channel.id, clicked=1)] * 6)
    assert 1 < rows.count() <= 8


def test_an_unknown_counter_is_a_programming_error(alice):
    with pytest.raises(ValueError, match="colour"):
        counter_add(alice.channel.id, colour=1)


def test_the_web_push_key_is_the_channels_own(alice, bob):
    responses = [
        Client().get("/web-push-key", headers={"X-Channel-ID": str(owner.channel.id).upper()})
        for owner in (alice, bob)
    ]

    found = [response.json() for response in responses]
    assert [response["retired_keys"] for response in found] == [[], []]
    assert found[0]["public_key"] != found[1]["public_key"]
    raw = base64.urlsafe_b64decode(found[0]["public_key"] + "=")
    assert ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)


def test_the_private_vapid_key_fits_the_public_one(alice):
    row = VapidKey.objects.get(channel=alice.channel)

    found = vapid_private_keys([row.id])[row.id]

    number = int.from_bytes(base64.urlsafe_b64decode(found.private_key + "="))
    public = ec.derive_private_key(number, ec.SECP256R1()).public_key().public_numbers()
    point = b"\x04" + public.x.to_bytes(32) + public.y.to_bytes(32)
    assert base64.urlsafe_b64encode(point).rstrip(b"=").decode() == row.public_key
    assert found.subject == alice.channel.vapid_subject


def test_after_a_rotation_the_old_key_still_serves_and_the_new_one_is_given_out(alice):
    old = VapidKey.objects.get(channel=alice.channel)

    new = vapid_key_rotate(channel=alice.channel)

    headers = {"X-Channel-ID": str(alice.channel.id)}
    assert Client().get("/web-push-key", headers=headers).json() == {
        "public_key": new.public_key,
        "retired_keys": [old.public_key],
    }
    assert set(vapid_private_keys([old.id, new.id])) == {old.id, new.id}


@pytest.mark.parametrize(
    ("header", "status", "expected"),
    [
        (None, 400, "channel_id_missing"),
        ("", 400, "channel_id_missing"),
        ("5", 400, "channel_id_malformed"),
        (NOWHERE_BARE, 400, "channel_id_malformed"),
        (f"{NOWHERE}, {NOWHERE}", 400, "channel_id_malformed"),
        (NOWHERE, 404, "channel_not_found"),
    ],
)
def test_public_endpoints_need_the_channel_header(header, status, expected):
    headers = {} if header is None else {"X-Channel-ID": header}

    assert code(Client().get("/web-push-key", headers=headers), status) == expected
    response = Client().post("/subscribe", browser(), "application/json", headers=headers)
    assert code(response, status) == expected


@pytest.mark.parametrize(
    "subject", ["mailto:push@example.com", "https://example.com/contact", "mailto:a+b@x.co.uk"]
)
def test_a_subject_that_apple_accepts_is_accepted(subject):
    assert channel_create(name="x", vapid_subject=subject).vapid_subject == subject


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "push@example.com",
        "mailto:",
        "mailto:push@localhost",
        "mailto:push@example.local",
        "mailto:push@10.0.0.1",
        "mailto:a@b.com,c@d.com",
        "mailto:a b@example.com",
        "http://example.com",
        "https://localhost",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://",
        "https://[",
        "tel:123",
        "mailto:" + "a" * 250 + "@example.com",
    ],
)
def test_a_subject_that_apple_refuses_is_refused(subject):
    with pytest.raises(Invalid):
        channel_create(name="x", vapid_subject=subject)


@pytest.mark.parametrize("name", ["", "  ", "a" * 201, "a\x00"])
def test_a_channel_needs_a_name(name):
    with pytest.raises(Invalid):
        channel_create(name=name)
    assert not Channel.objects.exists()


def test_a_secret_under_a_removed_key_is_unreadable(alice, settings):
    row = VapidKey.objects.get(channel=alice.channel)
    settings.CREDENTIAL_KEYS = (Fernet.generate_key().decode(),)

    with pytest.raises(SecretUnreadable):
        vapid_private_keys([row.id])
