"""TLS in front of a server that has none, with a self-signed certificate, as clients see a
hosting platform's databases."""

import asyncio
import ssl
import threading
from concurrent.futures import Future
from contextlib import contextmanager, suppress

_ASKS_FOR_TLS = bytes.fromhex("00000008 04d2162f")  # PostgreSQL's SSLRequest
_STOP_SECONDS = 30


class _Front:
    def __init__(self, certificate, server, is_asked):
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(certificate)
        self._server = server
        self._is_asked = is_asked
        self.started = Future()

    async def run(self):
        tls = None if self._is_asked else self._tls
        front = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        stop = asyncio.current_task().cancel
        port = front.sockets[0].getsockname()[1]
        self.started.set_result((port, asyncio.get_running_loop(), stop))
        try:
            await asyncio.Event().wait()
        finally:
            front.close()

    async def _serve(self, reader, writer):
        if self._is_asked and not await self._agree(reader, writer):
            writer.close()
            return
        behind_reader, behind_writer = await asyncio.open_connection(*self._server)
        try:
            await asyncio.gather(_copy(reader, behind_writer), _copy(behind_reader, writer))
        except asyncio.CancelledError:  # the front stops before its clients, and this task ends
            writer.transport.abort()
            behind_writer.transport.abort()

    async def _agree(self, reader, writer):
        """Whether the client asks for TLS, which it then has."""
        if await reader.readexactly(len(_ASKS_FOR_TLS)) != _ASKS_FOR_TLS:
            return False
        writer.write(b"S")
        await writer.drain()
        await writer.start_tls(self._tls)
        return True


async def _copy(reader, writer):
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextmanager
def tls_front(certificate, server, *, is_asked=False):
    """The port of a front of `server`, a host and a port. `is_asked`: the client first asks in
    plain text whether there is TLS, as PostgreSQL's clients do."""
    front = _Front(certificate, server, is_asked)

    def work():
        with suppress(asyncio.CancelledError):
            asyncio.run(front.run())

    thread = threading.Thread(target=work)
    thread.start()
    port, loop, stop = front.started.result()
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stop)
        thread.join(_STOP_SECONDS)
