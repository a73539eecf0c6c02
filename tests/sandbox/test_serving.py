"""Where the sandboxes serve, and what they keep."""

import socket
import stat
from urllib.parse import urlsplit

import pytest

from tests.sandbox.services import SERVICES


@pytest.fixture(params=SERVICES)
def running(request):
    return SERVICES[request.param]


def address_of(sandbox):
    parts = urlsplit(getattr(sandbox, "origin", f"//{getattr(sandbox, 'server', '')}"))
    return parts.hostname, parts.port


def test_an_address_is_taken_until_the_block_ends(running):
    with running() as service:
        address = address_of(service.sandbox)
        with pytest.raises(OSError, match="in use"), running(port=address[1]):
            pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    with running(port=address[1]) as again:
        assert address_of(again.sandbox) == address


def test_devices_and_credentials_of_a_state_file_survive_a_restart(running, tmp_path):
    path = tmp_path / "state.jsonl"
    with running(state_file=path) as before:
        kept, deleted = before.register(), before.register()
        before.delete(deleted)
        port = address_of(before.sandbox)[1]
    assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}
    with running(before.sender, port=port, state_file=path) as after:
        assert after.statuses(kept, 1) == [after.accepted]
        assert after.statuses(deleted, 1) == [after.deleted]
        assert after.sandbox.accepted_count() == 1
        after.sandbox.reset()
    with running(state_file=path) as empty:
        assert empty.sandbox.devices() == []


def test_without_content_only_counts_and_statuses_are_kept(running):
    with running(keep_content=False) as service:
        device = service.register()
        service.statuses(device, 1)
        [receipt] = service.sandbox.messages(service.id_of(device))
    contents = [getattr(receipt, each, None) for each in ("plaintext", "message", "payload")]
    assert (receipt.headers, contents) == ({}, [None] * 3)
    assert (receipt.status, receipt.accepted) == (service.accepted, True)


def test_an_unknown_device_is_a_keyerror(running):
    with running() as service:
        with pytest.raises(KeyError):
            service.sandbox.messages("unknown")
        with pytest.raises(KeyError):
            service.sandbox.accepted_count("unknown")
