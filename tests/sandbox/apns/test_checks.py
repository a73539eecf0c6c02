"""The APNs sandbox refuses what APNs refuses, for the same reason and in the same order."""

import json
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sandbox import running_apns_sandbox
from tests.sandbox.apns.sender import BODY, Provider, headers_of, token_of


@pytest.fixture(scope="module")
def sandbox():
    with running_apns_sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def key(sandbox):
    return sandbox.key()


@pytest.fixture
def device(sandbox):
    return sandbox.register()


def sent(sandbox, headers, body=BODY):
    with Provider(sandbox) as provider:
        return provider.send(headers, body)


def test_a_valid_request_is_accepted_with_its_own_id(sandbox, key, device):
    headers = headers_of(device, token_of(key))
    answered = sent(sandbox, headers)
    assert (answered.status, answered.body) == (200, b"")
    assert answered.headers["apns-id"] == dict(headers)["apns-id"]
    [receipt] = sandbox.messages(device.token)
    assert (receipt.payload, receipt.accepted) == (BODY, True)
    assert receipt.headers["apns-topic"] == device.topic


def test_only_headers_that_the_topic_needs_are_required(sandbox, key, device):
    optional = ("apns_push_type", "apns_priority", "apns_expiration", "apns_id")
    headers = headers_of(device, token_of(key), **dict.fromkeys(optional))
    answered = sent(sandbox, headers)
    assert answered.status == 200
    assert len(answered.headers["apns-id"]) == 36


@pytest.mark.parametrize(
    ("over", "status", "reason"),
    [
        ({"path": "/"}, 404, "BadPath"),
        ({"path": "/4/device/a1"}, 404, "BadPath"),
        ({"path": "/3/device/"}, 400, "MissingDeviceToken"),
        ({"path": "/3/device/xyz"}, 400, "BadDeviceToken"),
        ({"path": "/3/device/" + "a1" * 32}, 400, "BadDeviceToken"),
        ({"method": "PUT"}, 405, "MethodNotAllowed"),
        ({"apns_topic": None}, 400, "MissingTopic"),
        ({"apns_topic": "com.example.foreign"}, 400, "TopicDisallowed"),
        ({"apns_push_type": "banner"}, 400, "InvalidPushType"),
        ({"apns_priority": "7"}, 400, "BadPriority"),
        ({"apns_priority": "10", "apns_push_type": "background"}, 400, "BadPriority"),
        ({"apns_expiration": "soon"}, 400, "BadExpirationDate"),
        ({"apns_expiration": "-1"}, 400, "BadExpirationDate"),
        ({"apns_collapse_id": "x" * 65}, 400, "BadCollapseId"),
        ({"apns_collapse_id": "ü" * 33}, 400, "BadCollapseId"),
        ({"apns_id": "1"}, 400, "BadMessageId"),
        ({"apns_id": "6F9619FF-8B86-D011-B42D-00C04FC964FF"}, 400, "BadMessageId"),
        ({"authorization": None}, 403, "MissingProviderToken"),
        ({"authorization": "basic x"}, 403, "MissingProviderToken"),
        ({"authorization": "bearer nonsense"}, 403, "InvalidProviderToken"),
    ],
)
def test_a_broken_rule_is_named(sandbox, key, device, over, status, reason):
    answered = sent(sandbox, headers_of(device, token_of(key), **over))
    assert (answered.status, answered.reason) == (status, reason)
    assert answered.headers["content-type"] == "application/json"
    assert sandbox.accepted_count(device.token) == 0


@pytest.mark.parametrize(
    "over",
    [
        {"apns_collapse_id": "x" * 64},
        {"apns_collapse_id": "ü" * 32},
        {"apns_priority": "1"},
        {"apns_priority": "5", "apns_push_type": "background"},
        {"apns_push_type": "background", "apns_priority": None},
    ],
)
def test_a_request_at_the_limits_is_accepted(sandbox, key, device, over):
    assert sent(sandbox, headers_of(device, token_of(key), **over)).status == 200


def test_the_checks_run_in_apples_order(sandbox, key, device):
    """Each error is repaired in turn; the next one is reported."""
    good = dict(headers_of(device, token_of(key)))
    errors = {
        ":path": ("/", "BadPath"),
        ":method": ("PUT", "MethodNotAllowed"),
        "apns-topic": ("", "MissingTopic"),
        "apns-push-type": ("banner", "InvalidPushType"),
        "apns-priority": ("7", "BadPriority"),
        "apns-expiration": ("soon", "BadExpirationDate"),
        "apns-collapse-id": ("x" * 65, "BadCollapseId"),
        "apns-id": ("1", "BadMessageId"),
        "authorization": ("bearer x", "InvalidProviderToken"),
    }
    headers = good | {name: value for name, (value, _) in errors.items()}
    for name, (_, reason) in errors.items():
        assert sent(sandbox, list(headers.items()), b"x" * 4_097).reason == reason
        headers[name] = good.get(name, "topic")
    assert sent(sandbox, list(headers.items()), b"x" * 4_097).reason == "PayloadTooLarge"
    assert sent(sandbox, list(headers.items())).status == 200


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 400, "PayloadEmpty"),
        (b"{}", 400, "PayloadEmpty"),
        (b"[]", 400, "PayloadEmpty"),
        (b'{"aps":', 400, "PayloadEmpty"),
        (b'{"aps":1}', 400, "PayloadEmpty"),
        (b"\xff", 400, "PayloadEmpty"),
        (b'{"aps":{"bagde":1}}', 400, "InvalidPayload"),
        (b'{"aps":{"badge":"1"}}', 400, "InvalidPayload"),
        (b'{"aps":{"badge":true}}', 400, "InvalidPayload"),
        (b'{"aps":{"alert":{"tilte":"x"}}}', 400, "InvalidPayload"),
        (b'{"aps":{"alert":{"subtitle":5}}}', 400, "InvalidPayload"),
        (b'{"aps":{"alert":{"loc-args":"x"}}}', 400, "InvalidPayload"),
        (b'{"aps":{"sound":{"name":"a","critical":true}}}', 400, "InvalidPayload"),
        (b'{"aps":{"sound":{"volume":1.5}}}', 400, "InvalidPayload"),
        (b'{"aps":{"interruption-level":"urgent"}}', 400, "InvalidPayload"),
        (b'{"aps":{"content-available":"1"}}', 400, "InvalidPayload"),
        (b'{"aps":{"relevance-score":"1"}}', 400, "InvalidPayload"),
        (b'{"aps":{"thread-id":1}}', 400, "InvalidPayload"),
        (b'{"aps":{}}' + b" " * 4_087, 413, "PayloadTooLarge"),
        (b"x" * 40_000, 413, "PayloadTooLarge"),
    ],
)
def test_a_payload_must_be_json_with_aps_of_at_most_4096_bytes(
    sandbox, key, device, body, status, reason
):
    answered = sent(sandbox, headers_of(device, token_of(key)), body)
    assert (answered.status, answered.reason) == (status, reason)


def test_a_payload_of_4096_bytes_is_accepted(sandbox, key, device):
    body = b'{"aps":{}}' + b" " * 4_086
    assert sent(sandbox, headers_of(device, token_of(key)), body).status == 200
    assert sandbox.messages(device.token)[0].payload == body


def test_a_device_is_found_by_its_token_in_capitals_and_only_for_its_app(sandbox, key, device):
    headers = headers_of(device, token_of(key), path=f"/3/device/{device.token.upper()}")
    assert sent(sandbox, headers).status == 200
    assert sent(sandbox, [*headers, ("apns-topic", device.topic)]).reason == "DuplicateHeaders"
    other = sandbox.register("com.example.other")
    headers = headers_of(other, token_of(key), apns_topic="com.example.app")
    assert sent(sandbox, headers).reason == "DeviceTokenNotForTopic"


def foreign_key():
    private = ec.generate_private_key(ec.SECP256R1())
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iat": -3_590}, None),
        ({"iat": -3_610}, "ExpiredProviderToken"),
        ({"iat": 10}, "InvalidProviderToken"),
        ({"iss": "OTHERTEAM1"}, "InvalidProviderToken"),
        ({"headers": {"kid": "UNKNOWN123"}}, "InvalidProviderToken"),
        ({"private_key": foreign_key()}, "InvalidProviderToken"),
        ({"algorithm": "HS256", "private_key": "x" * 64}, "InvalidProviderToken"),
    ],
)
def test_a_provider_token_must_be_signed_by_the_teams_key_within_the_hour(
    sandbox, key, device, claims, reason
):
    if "iat" in claims:
        claims = {"iat": int(time.time()) + claims["iat"]}
    answered = sent(sandbox, headers_of(device, token_of(key, **claims)))
    assert (answered.status, answered.body and answered.reason) == (
        (200, b"") if reason is None else (403, reason)
    )


def test_a_tampered_token_is_rejected(sandbox, key, device):
    head, claims, signature = token_of(key).split(".")
    other = token_of(key, iat=int(time.time()) - 60).split(".")[1]
    for token in (f"{head}.{other}.{signature}", f"{head}.{claims}.", f"{head}.{claims}"):
        assert sent(sandbox, headers_of(device, token)).reason == "InvalidProviderToken"


def test_a_provider_token_must_be_used_for_twenty_minutes_on_a_connection(sandbox, key, device):
    tokens = [token_of(key, iat=int(time.time()) - age) for age in (60, 30)]
    with Provider(sandbox) as provider:
        statuses = [provider.send(headers_of(device, each)) for each in [*tokens, tokens[0]]]
    assert [answered.status for answered in statuses] == [200, 429, 200]
    assert statuses[1].reason == "TooManyProviderTokenUpdates"
    assert sent(sandbox, headers_of(device, tokens[1])).status == 200


def test_a_connection_belongs_to_one_team(sandbox, key, device):
    other = sandbox.key("OTHERTEAM1")
    with Provider(sandbox) as provider:
        assert provider.send(headers_of(device, token_of(key))).status == 200
        answered = provider.send(headers_of(device, token_of(other)))
    assert answered.reason == "InvalidProviderToken"


@pytest.mark.parametrize(
    ("mode", "body"),
    [
        ("revoked", b'{"reason":"InvalidProviderToken"}'),
        ("expired", b'{"reason":"ExpiredProviderToken"}'),
        ("wrong_environment", b'{"reason":"BadEnvironmentKeyIdInToken"}'),
        ("unrelated", b'{"reason":"UnrelatedKeyIdInToken"}'),
        ("blocked", b"<html>"),
    ],
)
def test_a_key_can_be_rejected_for_some_requests(sandbox, device, mode, body):
    key = sandbox.key()
    key.behave(mode, times=1)
    answered = sent(sandbox, headers_of(device, token_of(key)))
    assert answered.status == 403
    assert answered.body.startswith(body)
    assert sent(sandbox, headers_of(device, token_of(key))).status == 200


def test_a_key_is_accepted_by_the_services_own_endpoint(key):
    credential = key.credential
    assert json.loads(json.dumps(credential)) == credential
    assert credential.keys() == {"key", "key_id", "team_id", "topic", "environment"}
    assert (len(credential["key_id"]), len(credential["team_id"])) == (10, 10)
    assert credential["key"].startswith("-----BEGIN PRIVATE KEY-----")
    assert "PRIVATE KEY" not in repr(key)
