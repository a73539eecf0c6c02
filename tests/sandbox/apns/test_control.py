import asyncio
import http.client
import json
import threading

import pytest
from aiohttp import web

from sandbox import ApnsSandbox
from tests.sandbox.apns.sender import BODY, Provider, headers_of, token_of


class Control:
    def __init__(self, port):
        self.port = port

    def __call__(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        text = body if isinstance(body, str) else json.dumps(body)
        connection.request(method, path, None if body is None else text)
        response = connection.getresponse()
        said = response.read()
        connection.close()
        return response.status, json.loads(said) if said else None


@pytest.fixture(scope="module")
def served():
    """The sandbox, and an HTTP server with its control routes, in one loop."""
    sandbox = ApnsSandbox()
    loop = asyncio.new_event_loop()

    async def start():
        application = web.Application()
        application.add_routes(sandbox.control_routes())
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        await sandbox.start()
        return runner, site._server.sockets[0].getsockname()[1]

    async def stop(runner):
        await sandbox.stop()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner, port = asyncio.run_coroutine_threadsafe(start(), loop).result()
    yield sandbox, Control(port)
    asyncio.run_coroutine_threadsafe(stop(runner), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def control(served):
    return served[1]


@pytest.fixture
def sandbox(served):
    return served[0]


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
    made = sandbox._registry.devices[device["token"]]
    signed = token_of(sandbox._registry.keys[key["key_id"]])
    with Provider(sandbox) as provider:
        assert provider.send(headers_of(made, signed)).status == 200
    status, said = control("GET", f"/apns/devices/{device['token']}/messages")
    [message] = said["messages"]
    assert (status, message["payload"], message["accepted"]) == (200, BODY.decode(), True)
    assert message["headers"]["apns-topic"] == "a.b"


def test_many_devices_can_be_made_at_once(control):
    status, said = control("POST", "/apns/devices", {"count": 5})
    assert (status, len({device["token"] for device in said["devices"]})) == (201, 5)


def test_behaviours_of_devices_and_keys_are_set_over_http(control, sandbox):
    device, key = sandbox.register(), sandbox.key()
    throttled = {"mode": "throttled", "times": 1, "retry_after": 3}
    assert control("PUT", f"/apns/devices/{device.token}/behaviour", throttled) == (204, None)
    with Provider(sandbox) as provider:
        answered = provider.send(headers_of(device, token_of(key)))
        assert (answered.status, answered.headers["retry-after"]) == (429, "3")
        assert control("PUT", f"/apns/keys/{key.key_id}/behaviour", {"mode": "revoked"})[0] == 204
        assert provider.send(headers_of(device, token_of(key))).status == 403


def test_a_deleted_device_is_unregistered(control, sandbox):
    device, key = sandbox.register(), sandbox.key()
    assert control("DELETE", f"/apns/devices/{device.token}") == (204, None)
    with Provider(sandbox) as provider:
        assert provider.send(headers_of(device, token_of(key))).reason == "Unregistered"


def test_totals_are_given_for_each_device_and_for_all(control, sandbox):
    devices, key = [sandbox.register(), sandbox.register()], sandbox.key()
    devices[1].behave("internal_error")
    with Provider(sandbox) as provider:
        for device in devices:
            provider.send(headers_of(device, token_of(key, iat=1)))
            provider.send(headers_of(device, token_of(key, iat=1)))
    query = "&".join(f"token={device.token}" for device in devices)
    status, said = control("GET", f"/apns/messages?{query}")
    assert (status, said["requests"], said["accepted"]) == (200, 4, 0)
    assert said["devices"][devices[0].token]["statuses"] == {"403": 2}


def test_a_reset_deletes_everything(control, sandbox):
    device = sandbox.register()
    assert control("POST", "/apns/reset") == (204, None)
    assert control("GET", f"/apns/devices/{device.token}/messages")[0] == 404
    assert control("GET", "/apns/messages")[1]["devices"] == {}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/apns/keys", {"name": "x"}, 400),
        ("POST", "/apns/keys", {"topic": 5}, 400),
        ("POST", "/apns/keys", {"topic": ""}, 400),
        ("POST", "/apns/devices", {"count": 0}, 400),
        ("POST", "/apns/devices", {"token": "a1"}, 400),
        ("POST", "/apns/devices", "no json", 400),
        ("PUT", "/apns/devices/a1/behaviour", {"mode": "hang"}, 404),
        ("GET", "/apns/devices/a1/messages", None, 404),
        ("GET", "/apns/messages?token=a1", None, 404),
        ("DELETE", "/apns/devices/a1", None, 404),
        ("PUT", "/apns/keys/UNKNOWN123/behaviour", {"mode": "revoked"}, 404),
    ],
)
def test_an_invalid_request_is_answered_with_its_fault(control, method, path, body, status):
    answered, said = control(method, path, body)
    assert answered == status
    assert said["error"]


def test_an_unknown_mode_is_named(control, sandbox):
    device, key = sandbox.register(), sandbox.key()
    for path in (f"/apns/devices/{device.token}", f"/apns/keys/{key.key_id}"):
        status, said = control("PUT", f"{path}/behaviour", {"mode": "explode"})
        assert status == 400
        assert "mode must be one of" in said["error"]
