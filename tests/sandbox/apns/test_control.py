"""What only the HTTP interface of the APNs sandbox has."""

import pytest

from tests.sandbox.apns.sender import BODY, Provider, headers_of, token_of
from tests.sandbox.services import call, ios


@pytest.fixture(scope="module")
def service():
    with ios() as running:
        yield running


@pytest.fixture
def control(service):
    """Calls the control interface."""
    return lambda *request: call(service.control, *request)


@pytest.fixture
def sandbox(service):
    return service.sandbox


def test_the_interface_names_the_server_and_its_authority(control, sandbox):
    assert control("GET", "/apns") == (
        200,
        {"server": sandbox.server, "ca_file": str(sandbox.ca_file), "ca_pem": sandbox.ca_pem},
    )


def test_a_key_and_a_device_made_over_http_work(control, sandbox):
    status, key = control("POST", "/apns/keys", {"team_id": "TEAM123456", "topic": "a.b"})
    assert (status, key["team_id"], key["topic"]) == (201, "TEAM123456", "a.b")
    status, device = control("POST", "/apns/devices", {"topic": "a.b"})
    assert (status, device["topic"]) == (201, "a.b")
    made = sandbox.registry.devices[device["token"]]
    signed = token_of(sandbox.registry.keys[key["key_id"]])
    with Provider(sandbox) as provider:
        assert provider.send(headers_of(made, signed)).status == 200
    status, said = control("GET", f"/apns/devices/{device['token']}/messages")
    [message] = said["messages"]
    assert (status, message["payload"], message["accepted"]) == (200, BODY.decode(), True)
    assert message["headers"]["apns-topic"] == "a.b"


def test_the_behaviour_of_a_key_is_set_over_http(control, sandbox):
    device, key = sandbox.register(), sandbox.key()
    assert control("PUT", f"/apns/keys/{key.key_id}/behaviour", {"mode": "revoked"})[0] == 204
    with Provider(sandbox) as provider:
        assert provider.send(headers_of(device, token_of(key))).status == 403


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/apns/keys", {"name": "x"}, 400),
        ("POST", "/apns/keys", {"topic": 5}, 400),
        ("POST", "/apns/keys", {"topic": ""}, 400),
        ("POST", "/apns/devices", {"topic": ""}, 400),
        ("PUT", "/apns/keys/UNKNOWN123/behaviour", {"mode": "revoked"}, 404),
    ],
)
def test_an_invalid_request_is_rejected_with_a_reason(control, method, path, body, status):
    answered, said = control(method, path, body)
    assert answered == status
    assert said["error"]


def test_an_unknown_mode_of_a_key_is_rejected(control, sandbox):
    path = f"/apns/keys/{sandbox.key().key_id}/behaviour"
    status, said = control("PUT", path, {"mode": "explode"})
    assert status == 400
    assert "mode must be one of" in said["error"]
