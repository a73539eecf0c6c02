"""What the HTTP interfaces of all three sandboxes share, for other processes."""

import http.client
from contextlib import closing
from datetime import datetime
from urllib.parse import urlsplit

import pytest

from tests.sandbox.services import SERVICES


@pytest.fixture(scope="module", params=SERVICES)
def service(request):
    with SERVICES[request.param]() as running:
        yield running


def test_many_devices_are_made_with_one_request(service):
    before = len(service.sandbox.devices())
    status, made = service.call("POST", service.added_at, {"count": 300})
    ids = {each[service.id_name] for each in made[service.devices.strip("/")]}
    assert (status, len(ids)) == (201, 300)
    devices = service.sandbox.devices()[before:]
    assert {service.id_of(device) for device in devices} == ids
    assert all(service.statuses(device, 1) == [service.accepted] for device in devices[::100])


def test_a_behaviour_is_set_over_http(service):
    device = service.register()
    behaviour = {"mode": "error", "times": 1, "status": 502, "headers": {"X-A": "b"}}
    assert service.call("PUT", f"{service.path_of(device)}/behaviour", behaviour) == (204, None)
    response = service.sender.send(device)
    assert (response.status, response.headers["X-A"]) == (502, "b")
    assert service.statuses(device, 1) == [service.accepted]


def test_the_messages_of_a_device_are_listed_with_their_results(service):
    device = service.register()
    device.behave("error", status=500, times=1)
    service.statuses(device, 2)
    status, listed = service.call("GET", f"{service.path_of(device)}/messages")
    assert status == 200
    results = [(each["status"], each["taken"], each["complete"]) for each in listed["messages"]]
    assert results == [(500, False, True), (service.accepted, True, True)]
    assert [each["accepted"] for each in listed["messages"]] == [False, True]
    assert datetime.fromisoformat(listed["messages"][0]["at"]).tzinfo is not None


def test_totals_are_given_for_each_device_and_for_all(service):
    one, two = service.register(), service.register()
    two.behave("error", status=418, times=1)
    assert service.statuses(one, 1) + service.statuses(two, 2) == [
        service.accepted,
        418,
        service.accepted,
    ]
    ids = [service.id_of(device) for device in (one, two)]
    _, totals = service.call(
        "GET", f"/messages?{service.id_name}={ids[0]}&{service.id_name}={ids[1]}"
    )
    assert (totals["requests"], totals["taken"], totals["accepted"]) == (3, 2, 2)
    assert list(totals["devices"]) == ids
    assert totals["devices"][ids[1]] == {
        "requests": 2,
        "taken": 1,
        "accepted": 1,
        "statuses": {"418": 1, str(service.accepted): 1},
    }
    assert set(ids) <= service.call("GET", "/messages")[1]["devices"].keys()


def test_a_deleted_device_keeps_its_messages(service):
    device = service.register()
    service.statuses(device, 1)
    service.delete(device)
    assert service.statuses(device, 1) == [service.deleted]
    service.delete(device)
    _, listed = service.call("GET", f"{service.path_of(device)}/messages")
    assert [each["status"] for each in listed["messages"]] == [service.accepted, service.deleted]


@pytest.mark.parametrize("running", SERVICES.values(), ids=SERVICES)
def test_a_reset_deletes_devices_and_messages(running):
    with running() as service:
        device = service.register()
        service.statuses(device, 1)
        assert service.call("POST", "/reset") == (204, None)
        assert service.call("GET", f"{service.path_of(device)}/messages")[0] == 404
        assert service.call("GET", "/messages")[1]["requests"] == 0
        assert service.sandbox.devices() == []


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not a JSON object"),
        ({"key": "x"}, "unknown fields: key"),
        ({"count": 0}, "count must be"),
        ({"count": True}, "count must be"),
        ({"count": 10**9}, "count must be"),
    ],
)
def test_an_invalid_device_is_rejected_with_a_reason(service, body, complaint):
    before = len(service.sandbox.devices())
    status, response = service.call("POST", service.added_at, body)
    assert status == 400
    assert complaint in response["error"]
    assert len(service.sandbox.devices()) == before


@pytest.mark.parametrize(
    "body", [{}, {"mode": "sleepy"}, {"mode": []}, {"mode": "accept", "self": 1}]
)
def test_an_invalid_behaviour_is_rejected_over_http(service, body):
    path = f"{service.path_of(service.register())}/behaviour"
    status, response = service.call("PUT", path, body)
    assert status == 400
    assert response["error"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "{devices}/x/behaviour"),
        ("GET", "{devices}/x/messages"),
        ("DELETE", "{devices}/x"),
        ("GET", "/messages?{id_name}=x"),
    ],
)
def test_an_unknown_device_is_404(service, method, path):
    path = path.format(devices=service.devices, id_name=service.id_name)
    status, response = service.call(method, path)
    assert status == 404
    assert "no such" in response["error"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8030", 200),
        ("127.0.0.1", 200),
        ("[::1]:8030", 200),
        ("192.168.1.7:8030", 200),
        ("rebound.example:8030", 403),
        ("localhost.example", 403),
        ("127.0.0.1.example", 403),
    ],
)
def test_a_name_that_a_page_could_rebind_does_not_reach_the_sandbox(service, host, status):
    parts = urlsplit(service.control.origin)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    with closing(connection):
        connection.request("GET", f"{service.base}/messages", headers={"Host": host})
        assert connection.getresponse().status == status
