"""GET /channel/:id, PUT /channel/:id/providers, GET /web-push-key."""

import base64
import json
import time
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from django.db import connection, transaction
from django.test import Client

from channels_app.models import Channel, ChannelCounter, ProviderCredential, VapidKey
from channels_app.selectors import credential_for, vapid_private_keys
from channels_app.services import (
    channel_create,
    counter_add,
    platform_pause,
    vapid_key_rotate,
)
from pushsvc.common.crypto import SecretUnreadable
from pushsvc.common.errors import Invalid
from tests.api.support import at_once, browser, code, faults, owner_of
from tests.factories import make_channel

pytestmark = pytest.mark.django_db


def pem(key, encryption=None):
    encryption = encryption or NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


RSA_KEY = pem(rsa.generate_private_key(65537, 2048))
P8 = pem(ec.generate_private_key(ec.SECP256R1()))
GOOGLE = {
    "type": "service_account",
    "project_id": "alices-shop",
    "private_key_id": "0123456789abcdef",
    "private_key": RSA_KEY,
    "client_email": "push@alices-shop.iam.gserviceaccount.com",
    "token_uri": "https://attacker.example/token",
    "universe_domain": "attacker.example",
}
APPLE = {
    "key": P8,
    "key_id": "ABC123DEFG",
    "team_id": "DEF123GHIJ",
    "topic": "com.example.shop",
    "environment": "sandbox",
}
BESIDE = {f"apns_{name}": value for name, value in APPLE.items() if name != "key"}


@pytest.fixture
def alice():
    return owner_of(make_channel())


@pytest.fixture
def bob():
    return owner_of(make_channel("Bob's blog"))


def store(owner, **config):
    texts = {n: json.dumps(v) if isinstance(v, dict) else v for n, v in config.items()}
    return owner.call("PUT", f"/channel/{owner.channel.id}/providers", {"providers_config": texts})


def platforms(owner):
    answer = owner.call("GET", f"/channel/{owner.channel.id}").json()
    return answer["channel_info"]["platforms"]


def test_the_statistics_of_a_new_channel_are_zeros_in_the_order_of_the_interface(alice):
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


def test_an_id_is_known_in_either_case_and_written_in_lower_case(alice):
    response = alice.call("GET", f"/channel/{str(alice.channel.id).upper()}")

    assert response.json()["channel_info"]["channel_id"] == str(alice.channel.id)


def test_the_totals_are_those_of_the_channel_alone(alice, bob):
    counter_add(alice.channel.id, web_subscribers=5, recipients=9, delivered=7, bounced=2)
    counter_add(alice.channel.id, web_subscribers=-1, ios_subscribers=2, notifications_sent=1)
    counter_add(alice.channel.id, clicked=3, delivered=0)
    counter_add(bob.channel.id, web_subscribers=100, clicked=100)

    answer = alice.call("GET", f"/channel/{alice.channel.id}").json()

    assert answer["subscriber_count"] == 6
    assert list(answer["notification_stats"].values()) == [1, 9, 7, 2, 3]


@pytest.mark.django_db(transaction=True)
def test_counting_from_many_sides_at_once_loses_nothing():
    alice, bob = (owner_of(make_channel(name)) for name in ("Alice's shop", "Bob's blog"))

    def count():
        for _ in range(20):
            counter_add(alice.channel.id, web_subscribers=1)
            counter_add(bob.channel.id, web_subscribers=2)

    at_once(*[count] * 4)

    for owner, total in ((alice, 80), (bob, 160)):
        answer = owner.call("GET", f"/channel/{owner.channel.id}").json()
        assert answer["subscriber_count"] == total


@pytest.mark.django_db(transaction=True)
def test_connections_count_in_rows_of_their_own_and_a_transaction_in_one():
    channel = make_channel()
    rows = ChannelCounter.objects.filter(channel=channel)

    with transaction.atomic():
        for _ in range(20):
            counter_add(channel.id, clicked=1)
    assert rows.count() == 1

    at_once(*[lambda: counter_add(channel.id, clicked=1)] * 6)
    assert 1 < rows.count() <= 8


def test_a_counter_that_does_not_exist_is_a_fault_of_the_program(alice):
    with pytest.raises(ValueError, match="colour"):
        counter_add(alice.channel.id, colour=1)


def test_both_credentials_are_stored_and_their_platforms_enabled(alice):
    response = store(alice, fcm_service_account=GOOGLE, apns_key=APPLE)

    assert response.status_code == 200
    assert list(response.json()) == ["message"]
    assert "updated" in response.json()["message"]
    assert platforms(alice) == {"web": True, "android": True, "ios": True}
    android = credential_for(alice.channel.id, "android")
    assert (android.version, android.is_paused) == (1, False)
    assert json.loads(android.secret) == {
        name: GOOGLE[name]
        for name in ("project_id", "client_email", "private_key", "private_key_id")
    }
    assert json.loads(credential_for(alice.channel.id, "ios").secret) == APPLE


def test_one_credential_leaves_the_other_as_it_was(alice, bob):
    store(alice, fcm_service_account=GOOGLE)
    assert platforms(alice) == {"web": True, "android": True, "ios": False}

    store(alice, apns_key=APPLE)

    assert platforms(alice) == {"web": True, "android": True, "ios": True}
    assert credential_for(alice.channel.id, "android").version == 1
    assert platforms(bob) == {"web": True, "android": False, "ios": False}


def test_at_rest_no_secret_can_be_read(alice):
    store(alice, fcm_service_account=GOOGLE, apns_key=APPLE)

    rows = str(list(ProviderCredential.objects.values())) + str(list(VapidKey.objects.values()))
    assert "PRIVATE KEY" not in rows
    assert RSA_KEY.splitlines()[1] not in rows
    private = next(iter(vapid_private_keys(VapidKey.objects.values_list("id", flat=True)).values()))
    assert private.private_key not in rows


def test_storing_again_raises_the_version_and_lifts_the_pause(alice):
    store(alice, apns_key=APPLE)
    assert platform_pause(
        channel_id=alice.channel.id, platform="ios", version=1, code="x", detail="y" * 300
    )
    assert credential_for(alice.channel.id, "ios").is_paused

    store(alice, apns_key=APPLE)

    found = credential_for(alice.channel.id, "ios")
    assert (found.version, found.is_paused) == (2, False)


def test_a_late_answer_to_old_credentials_pauses_nothing(alice):
    store(alice, apns_key=APPLE)
    store(alice, apns_key=APPLE)
    pause = {"channel_id": alice.channel.id, "platform": "ios", "code": "x", "detail": ""}

    assert not platform_pause(version=1, **pause)
    assert not credential_for(alice.channel.id, "ios").is_paused
    assert platform_pause(version=2, **pause)
    assert not platform_pause(version=2, **pause)


def test_a_bare_p8_takes_the_rest_from_beside_it_or_from_what_is_stored(alice):
    assert store(alice, apns_key=P8, **BESIDE).status_code == 200
    assert json.loads(credential_for(alice.channel.id, "ios").secret) == APPLE

    assert store(alice, apns_key=P8, apns_environment="production").status_code == 200
    stored = json.loads(credential_for(alice.channel.id, "ios").secret)
    assert stored == {**APPLE, "environment": "production"}


def test_a_bare_p8_with_nothing_to_add_to_it_is_refused(alice):
    assert faults(store(alice, apns_key=P8, apns_topic="com.example.shop")) == [
        ("providers_config.apns_key_id", "required"),
        ("providers_config.apns_team_id", "required"),
        ("providers_config.apns_environment", "required"),
    ]
    assert platforms(alice)["ios"] is False


def test_where_one_of_two_is_refused_neither_is_stored(alice):
    assert store(alice, fcm_service_account=GOOGLE, apns_key="nonsense").status_code == 400

    assert not ProviderCredential.objects.exists()
    assert platforms(alice) == {"web": True, "android": False, "ios": False}


WEAK_RSA = pem(rsa.generate_private_key(65537, 1024))  # noqa: S505 - to be refused
OTHER_CURVE = pem(ec.generate_private_key(ec.SECP384R1()))
ED25519 = pem(ed25519.Ed25519PrivateKey.generate())
LOCKED = pem(rsa.generate_private_key(65537, 2048), BestAvailableEncryption(b"secret"))
_FCM, _APNS = "providers_config.fcm_service_account", "providers_config.apns_key"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", (_FCM, "blank")),
        ("nonsense", (_FCM, "malformed_json")),
        ("[]", (_FCM, "not_an_object")),
        ('{"a": 1, "a": 2}', (_FCM, "malformed_json")),
        ({**GOOGLE, "project_id": "x/../y"}, (f"{_FCM}.project_id", "malformed")),
        ({**GOOGLE, "project_id": "alices-shop\n"}, (f"{_FCM}.project_id", "malformed")),
        ({**GOOGLE, "project_id": 5}, (f"{_FCM}.project_id", "not_a_string")),
        ({**GOOGLE, "client_email": "push"}, (f"{_FCM}.client_email", "malformed")),
        ({**GOOGLE, "client_email": None}, (f"{_FCM}.client_email", "required")),
        ({**GOOGLE, "private_key_id": "a b"}, (f"{_FCM}.private_key_id", "malformed")),
        ({**GOOGLE, "private_key": "x"}, (f"{_FCM}.private_key", "not_a_private_key")),
        ({**GOOGLE, "private_key": ""}, (f"{_FCM}.private_key", "not_a_private_key")),
        ({**GOOGLE, "private_key": P8}, (f"{_FCM}.private_key", "not_a_private_key")),
        ({**GOOGLE, "private_key": WEAK_RSA}, (f"{_FCM}.private_key", "not_a_private_key")),
        ({**GOOGLE, "private_key": LOCKED}, (f"{_FCM}.private_key", "not_a_private_key")),
    ],
)
def test_a_service_account_that_cannot_work_is_refused(alice, text, fault):
    assert faults(store(alice, fcm_service_account=text)) == [fault]
    assert not ProviderCredential.objects.exists()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nonsense", (_APNS, "not_a_private_key")),
        ({**APPLE, "key": RSA_KEY}, (f"{_APNS}.key", "not_a_private_key")),
        ({**APPLE, "key": OTHER_CURVE}, (f"{_APNS}.key", "not_a_private_key")),
        ({**APPLE, "key": ED25519}, (f"{_APNS}.key", "not_a_private_key")),
        ({**APPLE, "key_id": "abc"}, (f"{_APNS}.key_id", "malformed")),
        (
            {**APPLE, "team_id": "DEF123GHI\N{FULLWIDTH DIGIT ONE}"},
            (f"{_APNS}.team_id", "malformed"),
        ),
        ({**APPLE, "topic": "com/example"}, (f"{_APNS}.topic", "malformed")),
        ({**APPLE, "environment": "staging"}, (f"{_APNS}.environment", "malformed")),
        ({**APPLE, "enviroment": "sandbox"}, (f"{_APNS}.enviroment", "unknown_field")),
        ({n: v for n, v in APPLE.items() if n != "team_id"}, (f"{_APNS}.team_id", "required")),
        ('{"key": NaN}', (_APNS, "malformed_json")),
    ],
)
def test_an_apns_key_that_cannot_work_is_refused(alice, text, fault):
    config = BESIDE if text == "nonsense" else {}

    assert faults(store(alice, apns_key=text, **config)) == [fault]


def test_no_answer_repeats_a_secret(alice):
    mangled = RSA_KEY.replace("PRIVATE KEY", "PRIVATE KEX")
    wrong = [
        {"fcm_service_account": {**GOOGLE, "private_key": mangled}},
        {"fcm_service_account": json.dumps(GOOGLE) + mangled},
        {"apns_key": {**APPLE, "key": RSA_KEY, "key_id": RSA_KEY}},
        {"apns_key": mangled, **BESIDE},
    ]

    for config in wrong:
        response = store(alice, **config)
        assert response.status_code == 400
        assert RSA_KEY.splitlines()[1] not in response.content.decode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("providers_config", "required")]),
        ({"providers_config": None}, [("providers_config", "null")]),
        ({"providers_config": "{}"}, [("providers_config", "not_an_object")]),
        ({"providers_config": {}}, [("providers_config", "empty")]),
        ({"providers_config": {"apns_key": None}}, [(_APNS, "null")]),
        ({"providers_config": {"apns_key": {}}}, [(_APNS, "not_a_string")]),
        ({"providers_config": {"apns_topic": "a.b"}}, [(_APNS, "required")]),
        (
            {"providers_config": {"apns_key": "x", "apns_kye": "y"}},
            [("providers_config.apns_kye", "unknown_field")],
        ),
        (
            {"provider_config": {}},
            [("providers_config", "required"), ("provider_config", "unknown_field")],
        ),
    ],
)
def test_a_body_of_another_shape_is_refused_by_name(alice, body, expected):
    path = f"/channel/{alice.channel.id}/providers"

    assert faults(alice.call("PUT", path, body)) == expected


def test_values_beside_a_key_that_holds_them_are_refused(alice):
    response = store(alice, apns_key=APPLE, apns_topic="com.example.other")

    assert faults(response) == [("providers_config.apns_topic", "given_twice")]


def waiting_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True)
def test_credentials_stored_at_the_same_time_each_get_a_version():
    alice = owner_of(make_channel())

    def hold_both_until_they_wait():
        with transaction.atomic():
            Channel.objects.select_for_update(no_key=True).get(pk=alice.channel.pk)
            for _ in range(1000):
                if waiting_for_a_lock() == 2:
                    return
                time.sleep(0.01)
        pytest.fail("nobody waits")

    def store_once():
        return store(alice, fcm_service_account=GOOGLE).status_code

    statuses = at_once(hold_both_until_they_wait, store_once, store_once)[1:]

    assert statuses == [200, 200]
    assert credential_for(alice.channel.id, "android").version == 2


def test_the_web_push_key_is_the_channels_own(alice, bob):
    answers = [
        Client().get("/web-push-key", headers={"X-Channel-ID": str(owner.channel.id).upper()})
        for owner in (alice, bob)
    ]

    found = [answer.json() for answer in answers]
    assert [list(answer) for answer in found] == [["public_key"]] * 2
    assert found[0] != found[1]
    raw = base64.urlsafe_b64decode(found[0]["public_key"] + "=")
    assert ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)


def test_the_private_half_fits_the_public_key(alice):
    row = VapidKey.objects.get(channel=alice.channel)

    found = vapid_private_keys([row.id])[row.id]

    number = int.from_bytes(base64.urlsafe_b64decode(found.private_key + "="))
    public = ec.derive_private_key(number, ec.SECP256R1()).public_key().public_numbers()
    point = b"\x04" + public.x.to_bytes(32) + public.y.to_bytes(32)
    assert base64.urlsafe_b64encode(point).rstrip(b"=").decode() == row.public_key
    assert found.subject == alice.channel.vapid_subject


def test_a_rotated_key_goes_on_serving_and_a_new_one_is_given_out(alice):
    old = VapidKey.objects.get(channel=alice.channel)

    new = vapid_key_rotate(channel=alice.channel)

    headers = {"X-Channel-ID": str(alice.channel.id)}
    assert Client().get("/web-push-key", headers=headers).json() == {"public_key": new.public_key}
    assert set(vapid_private_keys([old.id, new.id])) == {old.id, new.id}


@pytest.mark.parametrize(
    ("header", "status", "expected"),
    [
        (None, 400, "channel_id_missing"),
        ("", 400, "channel_id_missing"),
        ("5", 400, "channel_id_malformed"),
        (str(uuid4()).replace("-", ""), 400, "channel_id_malformed"),
        (f"{uuid4()}, {uuid4()}", 400, "channel_id_malformed"),
        (str(uuid4()), 404, "channel_not_found"),
    ],
)
def test_public_endpoints_want_a_channel_in_the_header(header, status, expected):
    headers = {} if header is None else {"X-Channel-ID": header}

    assert code(Client().get("/web-push-key", headers=headers), status) == expected
    answer = Client().post("/subscribe", browser(), "application/json", headers=headers)
    assert code(answer, status) == expected


@pytest.mark.parametrize(
    "subject", ["mailto:push@example.com", "https://example.com/contact", "mailto:a+b@x.co.uk"]
)
def test_a_subject_that_apple_takes_is_taken(subject):
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


def test_a_secret_under_a_key_that_is_gone_is_told_apart(alice, settings):
    row = VapidKey.objects.get(channel=alice.channel)
    settings.CREDENTIAL_KEYS = (Fernet.generate_key().decode(),)

    with pytest.raises(SecretUnreadable):
        vapid_private_keys([row.id])
