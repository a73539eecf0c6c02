"""Calls to hostile endpoints end within their time and read a bounded number of bytes.

`tests/faults/test_unknown_hosts.py` tests how often and how long unknown hosts are called.
"""

import asyncio
import contextlib

import pytest

from notifications_app.delivery.http_connection import MAX_RESPONSE
from tests.delivery.support import http_client

# What sockets and buffers of both ends hold beside what was read.
BUFFERED = 8 * 1024 * 1024
ALL_THAT_COMES = 10 * BUFFERED  # a server that sent this much was not cut off
ANSWERED = b"HTTP/1.1 201 Created\r\n"
CHUNKED = ANSWERED + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "empty lines": (b"", b"\r\n" * 5_000),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 500),
    "a long status": (b"HTTP/1.1 201 ", b"x" * 10_000),
    "a long header": (ANSWERED + b"X-Long: ", b"x" * 10_000),
    "many headers": (ANSWERED, b"X-More: and more\r\n" * 500),
    "a long body": (ANSWERED + b"Content-Length: 99999999999\r\n\r\n", b"x" * 10_000),
    "small chunks": (CHUNKED, b"1\r\nx\r\n" * 2_000),
    "a chunk's extension": (CHUNKED + b"1;", b"more=and-more;" * 700),
    "trailers": (CHUNKED + b"0\r\n", b"X-More: and more\r\n" * 500),
    "further answers": (b"", (ANSWERED + b"Content-Length: 0\r\n\r\n") * 200),
}
SLOW = {
    "nothing": (b"", b""),
    "a status, a byte at a time": (b"HTTP/1.1 201 ", b"x"),
    "a header, a byte at a time": (ANSWERED + b"X-Slow: ", b"x"),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
}


class Server:
    """Answers each request with `first`, then sends `more` without end."""

    def __init__(self, first, more, pause=0.0):
        self._parts = first, more
        self._pause = pause
        self.sent = 0
        self.calls = 0
        self.is_over = asyncio.Event()

    async def serve(self, reader, writer):
        self.calls += 1
        await reader.readuntil(b"\r\n\r\n")
        answering = asyncio.ensure_future(self._answer(writer))
        leaving = asyncio.ensure_future(self._until_left(reader))
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        answering.cancel()
        leaving.cancel()
        writer.close()
        self.is_over.set()

    async def _until_left(self, reader):
        with contextlib.suppress(OSError):
            await reader.read()

    async def _answer(self, writer):
        with contextlib.suppress(OSError):
            await self._send(writer, self._parts[0])
            while self.sent < ALL_THAT_COMES:
                await self._send(writer, self._parts[1])

    async def _send(self, writer, part):
        writer.write(part)
        self.sent += len(part)
        await writer.drain()
        await asyncio.sleep(self._pause)


async def called(server, seconds):
    """The outcome of one call with this time limit, and when the server had to stop."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    until = asyncio.get_running_loop().time() + seconds
    async with listening, http_client(connections_per_origin=1) as client:
        try:
            return await client.post(url, headers={}, body=b"x", until=until)
        except OSError as error:
            return error
        finally:
            await asyncio.wait_for(server.is_over.wait(), 60)


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_response_is_cut_off_before_its_time_ends(name):
    server = Server(*ENDLESS[name])

    outcome = asyncio.run(called(server, seconds=600))

    assert not isinstance(outcome, TimeoutError)
    assert server.sent <= MAX_RESPONSE + BUFFERED
    assert server.calls == 1


@pytest.mark.parametrize("name", SLOW)
def test_a_slowly_dripping_response_ends_at_its_time_limit(name):
    server = Server(*SLOW[name], pause=0.05)

    assert isinstance(asyncio.run(called(server, seconds=1.0)), TimeoutError)
    assert server.calls == 1


def test_each_response_on_a_kept_connection_is_measured_alone():
    """Push services keep connections for thousands of answers."""
    answer = ANSWERED + b"Content-Length: 1000\r\n\r\n" + b"x" * 1_000

    async def many():
        async def serve(reader, writer):
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await reader.readuntil(b"\r\n\r\nx"):
                    writer.write(answer)
            connections.append(writer.close())

        connections = []
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        until = asyncio.get_running_loop().time() + 60
        async with listening, http_client(connections_per_origin=1) as client:
            answers = [
                await client.post(url, headers={}, body=b"x", until=until)
                for _ in range(2 * MAX_RESPONSE // 1_000)
            ]
        return answers, connections

    answers, connections = asyncio.run(many())
    assert {answer.status for answer in answers} == {201}
    assert len(connections) <= 1
