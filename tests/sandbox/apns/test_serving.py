import asyncio
import socket
import ssl
import stat

import pytest

from sandbox import ApnsSandbox, running_apns_sandbox
from tests.sandbox.apns.sender import Provider, headers_of, token_of


def test_the_certificate_is_valid_for_its_host_and_its_authority_only():
    with running_apns_sandbox() as sandbox:
        assert sandbox.ca_file.read_text() == sandbox.ca_pem
        for name in ("127.0.0.1", "localhost"):
            tls = ssl.create_default_context(cafile=str(sandbox.ca_file))
            tls.set_alpn_protocols(["h2"])
            address = ("127.0.0.1", int(sandbox.server.split(":")[1]))
            plain = socket.create_connection(address, timeout=60)
            with tls.wrap_socket(plain, server_hostname=name) as connected:
                assert connected.selected_alpn_protocol() == "h2"
    assert not sandbox.ca_file.exists()


def test_two_sandboxes_have_different_authorities():
    with running_apns_sandbox() as one, running_apns_sandbox() as other:
        one.ca_pem = other.ca_pem
        with pytest.raises(ssl.SSLCertVerificationError):
            Provider(one)


def test_the_authority_can_be_written_to_a_chosen_file(tmp_path):
    path = tmp_path / "ca.pem"
    with running_apns_sandbox(ca_file=path) as sandbox:
        assert (sandbox.ca_file, path.read_text()) == (path, sandbox.ca_pem)
    assert path.exists()


def test_a_client_that_trusted_the_authority_still_trusts_it_after_a_restart(tmp_path):
    state = tmp_path / "apns.jsonl"
    with running_apns_sandbox(state_file=state) as sandbox:
        before = sandbox.ca_pem
    assert stat.S_IMODE((tmp_path / "apns.authority.pem").stat().st_mode) == 0o600

    with running_apns_sandbox(state_file=state) as sandbox, Provider(sandbox) as provider:
        assert sandbox.ca_pem == before
        assert provider.send(headers_of(sandbox.register(), token_of(sandbox.key()))).status == 200


def test_stopping_ends_hanging_requests_and_leaves_no_task():
    async def whole():
        sandbox = ApnsSandbox()
        await sandbox.start()
        device = sandbox.register()
        device.behave("hang")
        key = sandbox.key()

        def hang():
            with Provider(sandbox) as provider:
                provider.send(headers_of(device, token_of(key)))

        hanging = asyncio.create_task(asyncio.to_thread(hang))
        while not device.receipts:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # the provider is in another thread
        await sandbox.stop()
        with pytest.raises(ConnectionAbortedError):
            await hanging
        return sandbox.open_connection_count, asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(whole()) == (0, set())


def test_a_client_that_breaks_the_protocol_loses_its_connection():
    with running_apns_sandbox() as sandbox, Provider(sandbox) as provider:
        data_of_no_stream = b"\x00\x00\x01" + bytes(6) + b"x"
        provider.socket.sendall(data_of_no_stream)
        with pytest.raises(ConnectionAbortedError):
            provider.read_to_the_end()
