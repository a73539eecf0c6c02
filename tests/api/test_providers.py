"""PUT /channel/:id/providers: which credentials are stored, and which are refused."""

import json
import threading

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from django.db import transaction

from channels_app.feeds import EventKind
from channels_app.models import Channel, ProviderCredential, VapidKey, WebhookMessage
from channels_app.pauses import platform_pause
from channels_app.selectors import credential_for, vapid_private_keys
from channels_app.webhooks import webhook_create
from tests.api.credentials import APPLE, GOOGLE, P8, RSA_KEY, pem
from tests.api.support import errors, owner_of
from tests.factories import make_channel
from tests.pipeline.support import in_threads, until, waiting_sessions, waits_for

pytestmark = pytest.mark.django_db

_FCM, _APNS = "providers_config.fcm_service_account", "providers_config.apns_key"
BESIDE = {f"apns_{name}": value for name, value in APPLE.items() if name != "key"}


def store(owner, **config):
    texts = {n: json.dumps(v) if isinstance(v, dict) else v for n, v in config.items()}
    return owner.call("PUT", f"/channel/{owner.channel.id}/providers", {"providers_config": texts})


def platforms(owner):
    response = owner.call("GET", f"/channel/{owner.channel.id}").json()
    return response["channel_info"]["platforms"]


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


def test_storing_one_credential_leaves_the_other_unchanged(alice, bob):
    store(alice, fcm_service_account=GOOGLE)
    assert platforms(alice) == {"web": True, "android": True, "ios": False}

    store(alice, apns_key=APPLE)

    assert platforms(alice) == {"web": True, "android": True, "ios": True}
    assert credential_for(alice.channel.id, "android").version == 1
    assert platforms(bob) == {"web": True, "android": False, "ios": False}


def test_stored_credentials_are_encrypted(alice):
    store(alice, fcm_service_account=GOOGLE, apns_key=APPLE)

    rows = str(list(ProviderCredential.objects.values())) + str(list(VapidKey.objects.values()))
    assert "PRIVATE KEY" not in rows
    assert RSA_KEY.splitlines()[1] not in rows
    private = next(iter(vapid_private_keys(VapidKey.objects.values_list("id", flat=True)).values()))
    assert private.private_key not in rows


def test_storing_again_raises_the_version_and_ends_the_pause(alice):
    store(alice, apns_key=APPLE)
    assert platform_pause(
        channel_id=alice.channel.id, platform="ios", version=1, code="x", detail="y" * 300
    )
    assert credential_for(alice.channel.id, "ios").is_paused

    store(alice, apns_key=APPLE)

    found = credential_for(alice.channel.id, "ios")
    assert (found.version, found.is_paused) == (2, False)


@pytest.mark.django_db(transaction=True)
def test_credentials_that_are_stored_during_a_pause_tell_webhooks_of_its_end():
    alice = owner_of(make_channel())
    store(alice, apns_key=APPLE)
    events = [EventKind.PAUSED.value, EventKind.RESUMED.value]
    webhook_create(channel=alice.channel, url="https://hooks.example.com/", events=events)
    pause = {"channel_id": alice.channel.id, "platform": "ios", "code": "x", "detail": ""}

    with waits_for(
        lambda: platform_pause(version=1, **pause), lambda: store(alice, apns_key=APPLE)
    ):
        pass

    assert not credential_for(alice.channel.id, "ios").is_paused
    told = WebhookMessage.objects.order_by("pk").values_list("type", flat=True)
    assert list(told) == events


def test_a_late_response_to_replaced_credentials_pauses_nothing(alice):
    store(alice, apns_key=APPLE)
    store(alice, apns_key=APPLE)
    pause = {"channel_id": alice.channel.id, "platform": "ios", "code": "x", "detail": ""}

    assert not platform_pause(version=1, **pause)
    assert not credential_for(alice.channel.id, "ios").is_paused
    assert platform_pause(version=2, **pause)
    assert not platform_pause(version=2, **pause)


def test_a_bare_p8_key_takes_the_missing_values_from_the_request_or_the_stored_key(alice):
    assert store(alice, apns_key=P8, **BESIDE).status_code == 200
    assert json.loads(credential_for(alice.channel.id, "ios").secret) == APPLE

    assert store(alice, apns_key=P8, apns_environment="production").status_code == 200
    stored = json.loads(credential_for(alice.channel.id, "ios").secret)
    assert stored == {**APPLE, "environment": "production"}


def test_a_bare_p8_key_without_the_missing_values_is_refused(alice):
    assert errors(store(alice, apns_key=P8, apns_topic="com.example.shop")) == [
        ("providers_config.apns_key_id", "required"),
        ("providers_config.apns_team_id", "required"),
        ("providers_config.apns_environment", "required"),
    ]
    assert platforms(alice)["ios"] is False


def test_neither_credential_is_stored_if_one_is_refused(alice):
    assert store(alice, fcm_service_account=GOOGLE, apns_key="nonsense").status_code == 400

    assert not ProviderCredential.objects.exists()
    assert platforms(alice) == {"web": True, "android": False, "ios": False}


REFRESHED = {
    "type": "authorized_user",
    "client_id": "1.apps.googleusercontent.com",
    "client_secret": "not-for-us",
    "refresh_token": "not-for-us-either",
}


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (REFRESHED, "an “authorized_user” file"),
        ({"type": "external_account", "project_id": "a"}, "an “external_account” file"),
        ({"installed": {"client_id": "x"}}, "an “OAuth client” file"),
        ({"project_info": {"project_id": "x"}, "client": []}, "“google-services.json”"),
    ],
)
def test_another_kind_of_google_file_is_named_in_the_error(alice, file, kind):
    response = store(alice, fcm_service_account=file)

    assert errors(response) == [(_FCM, "wrong_file")]
    detail = response.json()["errors"][0]["detail"]
    assert kind in detail
    assert "A “service_account” file is needed" in detail
    assert "client_email" in detail
    assert detail.endswith("private_key.")
    assert "not-for-us" not in response.content.decode()


@pytest.mark.parametrize("field", ["fcm_service_account", "apns_key"])
def test_the_error_for_a_file_sent_as_an_object_explains_how_to_send_it(alice, field):
    body = {"providers_config": {field: {"a": 1}}}
    response = alice.call("PUT", f"/channel/{alice.channel.id}/providers", body)

    assert errors(response) == [(f"providers_config.{field}", "not_a_string")]
    assert "Encode the object as a string" in response.json()["errors"][0]["detail"]


# How a text looks after it was pasted, exported or printed.
CHANGED = {
    "byte order mark": lambda text: f"\ufeff{text}",
    "blanks around it": lambda text: f"\n \u00a0{text}\t\n",
    "single quotes": lambda text: f"'{text}'\n",
    "double quotes": lambda text: f'"{text}"',
    "backticks": lambda text: f"`{text}`",
    "as a JSON string": json.dumps,
    "line breaks of Windows": lambda text: text.replace("\n", "\r\n"),
}
KEY_CHANGED = CHANGED | {
    "literal line breaks": lambda text: text.replace("\n", "\\n"),
    "literal line breaks of Windows": lambda text: text.replace("\n", "\\r\\n"),
    "line breaks escaped twice": lambda text: text.replace("\n", "\\\\n"),
    "one line with blanks": lambda text: text.replace("\n", " "),
    "one line": lambda text: text.replace("\n", ""),
    "indented": lambda text: text.replace("\n", "\n    "),
    "with its comma": lambda text: f"{json.dumps(text)},",
    "slashes escaped": lambda text: json.dumps(text).replace("/", "\\/"),
}


@pytest.mark.parametrize("change", CHANGED)
def test_pasted_json_is_stored_as_its_issuer_wrote_it(alice, change):
    google, apple = (CHANGED[change](json.dumps(each, indent=2)) for each in (GOOGLE, APPLE))
    assert store(alice, fcm_service_account=google, apns_key=apple).status_code == 200

    secret = json.loads(credential_for(alice.channel.id, "android").secret)
    assert secret == {name: GOOGLE[name] for name in secret}
    assert json.loads(credential_for(alice.channel.id, "ios").secret) == APPLE


def test_a_service_account_whose_key_has_real_line_breaks_is_accepted(alice):
    printed = json.dumps(GOOGLE, indent=2).replace("\\n", "\n")
    assert store(alice, fcm_service_account=printed).status_code == 200
    secret = json.loads(credential_for(alice.channel.id, "android").secret)
    assert secret["private_key"] == RSA_KEY


@pytest.mark.parametrize("change", KEY_CHANGED)
def test_a_key_is_stored_as_its_issuer_wrote_it(alice, change):
    config = {
        "fcm_service_account": {**GOOGLE, "private_key": KEY_CHANGED[change](RSA_KEY)},
        "apns_key": {**APPLE, "key": KEY_CHANGED[change](P8)},
    }
    assert store(alice, **config).status_code == 200
    stored = {name: credential_for(alice.channel.id, name).secret for name in ("android", "ios")}
    assert json.loads(stored["android"])["private_key"] == RSA_KEY
    assert json.loads(stored["ios"]) == APPLE

    assert store(alice, apns_key=KEY_CHANGED[change](P8), **BESIDE).status_code == 200
    assert json.loads(credential_for(alice.channel.id, "ios").secret) == APPLE


@pytest.mark.parametrize("project", ["example.com:my-project", "a-b.example.co.uk:alices-shop"])
def test_a_project_of_a_domain_is_stored(alice, project):
    assert store(alice, fcm_service_account={**GOOGLE, "project_id": project}).status_code == 200
    response = alice.call("GET", f"/channel/{alice.channel.id}/platforms").json()
    assert response["platforms"]["android"]["credential"]["id"] == project


@pytest.mark.parametrize("bits", [1024, 2047])
def test_a_short_rsa_key_is_named_with_its_size(alice, bits):
    short = pem(rsa.generate_private_key(65537, bits))
    response = store(alice, fcm_service_account={**GOOGLE, "private_key": short})

    assert errors(response) == [(f"{_FCM}.private_key", "key_too_short")]
    assert response.json()["errors"][0]["detail"] == (
        f"The RSA key has {bits} bits. It must have 2048 or more."
    )


OTHER_CURVE = pem(ec.generate_private_key(ec.SECP384R1()))
ED25519 = pem(ed25519.Ed25519PrivateKey.generate())
LOCKED = pem(rsa.generate_private_key(65537, 2048), BestAvailableEncryption(b"secret"))


@pytest.mark.parametrize(
    ("text", "error"),
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
        ({**GOOGLE, "project_id": "example:my-project"}, (f"{_FCM}.project_id", "malformed")),
        ({**GOOGLE, "project_id": "example.com:"}, (f"{_FCM}.project_id", "malformed")),
        ({**GOOGLE, "project_id": "example.com:x:my-project"}, (f"{_FCM}.project_id", "malformed")),
        ({**GOOGLE, "project_id": "example.com/x:my-project"}, (f"{_FCM}.project_id", "malformed")),
        ({**GOOGLE, "private_key": LOCKED}, (f"{_FCM}.private_key", "not_a_private_key")),
    ],
)
def test_an_unusable_service_account_is_refused(alice, text, error):
    assert errors(store(alice, fcm_service_account=text)) == [error]
    assert not ProviderCredential.objects.exists()


@pytest.mark.parametrize(
    ("text", "error"),
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
def test_an_unusable_apns_key_is_refused(alice, text, error):
    config = BESIDE if text == "nonsense" else {}

    assert errors(store(alice, apns_key=text, **config)) == [error]


def test_values_that_are_also_in_the_key_are_refused(alice):
    response = store(alice, apns_key=APPLE, apns_topic="com.example.other")

    assert errors(response) == [("providers_config.apns_topic", "given_twice")]


def test_no_response_repeats_a_secret(alice):
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
        ({"providers_config": {"apns_key": None}}, [("providers_config", "empty")]),
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

    assert errors(alice.call("PUT", path, body)) == expected


@pytest.mark.django_db(transaction=True)
def test_credentials_stored_simultaneously_each_get_a_version():
    alice = owner_of(make_channel())
    is_held = threading.Event()

    def hold_both_until_they_wait():
        with transaction.atomic():
            Channel.objects.select_for_update(no_key=True).get(pk=alice.channel.pk)
            is_held.set()
            until(lambda: waiting_sessions() == 2)

    def store_once():
        assert is_held.wait(60)
        return store(alice, fcm_service_account=GOOGLE).status_code

    statuses = in_threads(hold_both_until_they_wait, store_once, store_once)[1:]

    assert statuses == [200, 200]
    assert credential_for(alice.channel.id, "android").version == 2
