"""The same over sockets, against the Procfile's web process: the responses are compared byte
for byte."""

import socket
from urllib.parse import urlsplit

import pytest

from channels_app.models import Scope
from pushsvc.common.store.redis_client import redis_client
from tests.admin.support import WORD
from tests.isolation.estates import MISSING, make_estate
from tests.isolation.operations import KINDS, OF_SOMEBODY
from tests.isolation.witness import difference, plain
from tests.pipeline.processes import running_web

KEYED = [each for each in OF_SOMEBODY if each.is_keyed]


@pytest.fixture
def web(transactional_db, tmp_path):
    with running_web(tmp_path / "web.log") as address:
        yield urlsplit(address).port


def response_to(port, request, named, **headers):
    """Every byte of the response except its date, in lines."""
    redis_client().flushdb()  # so that limits are the same for both requests
    lines = [
        f"{request.method} {request.path} HTTP/1.1",
        "Host: localhost",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(request.text)}",
        *(f"{name}: {value}" for name, value in (request.headers | headers).items()),
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", request.text]).encode())
        response = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    assert response.startswith("HTTP/1.1 ")
    parts = response.replace("\r\n", "\n").split("\n")
    return [plain(part, *named) for part in parts if not part.lower().startswith("date: ")]


@pytest.mark.django_db(transaction=True)
def test_no_byte_of_a_response_discloses_whether_another_has_the_thing(web):
    alice, bob = make_estate("Alice", "lion"), make_estate("Bob", WORD)
    key = {"Authorization": f"Key {alice.key(*Scope.values)}"}

    for operation in KEYED:
        for name in sorted(operation.names & KINDS.keys() - {"X-Channel-ID"}):
            theirs = bob.guesses[KINDS[name]][0] if name not in bob.ids else bob.ids[name]
            responses = [
                response_to(web, operation.request(alice, **{name: thing}), [thing], **key)
                for thing in (MISSING[KINDS[name]], theirs)
            ]
            assert not difference([responses[0]], [responses[1]]), (str(operation), name)
            assert WORD not in str(responses[1])
