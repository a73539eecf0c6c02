"""Kept connections, and what happens to a request when its connection ends."""

import asyncio
import socket
import time
from contextlib import nullcontext

import pytest

from notifications_app.delivery.http_client import ClientClosedError
from notifications_app.delivery.http_connection import NoResponseError
from tests.delivery.support import PushService, answer, hang, hang_up, http_client, raw, reset

SECONDS = 20.0
OK = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"


async def post(client, url, *, seconds=SECONDS, body=b"x", **headers):
    until = asyncio.get_running_loop().time() + seconds
    return await client.post(url, headers=headers, body=body, until=until)


def in_turn(*behaviours):
    """The first request gets the first behaviour, and so on. The last one stays."""
    left = list(behaviours)

    async def behave(reader, writer):
        await (left.pop(0) if len(left) > 1 else left[0])(reader, writer)

    return behave


async def until_true(condition):
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing of ours tells it
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("end", [hang_up, reset])
@pytest.mark.parametrize("earlier", [[], [answer()]], ids=["new", "kept"])
def test_a_request_that_was_read_is_not_sent_again(earlier, end):
    """The push service may have taken its message."""

    async def sent():
        async with PushService(in_turn(*earlier, end)) as service, http_client() as client:
            for _ in earlier:
                await post(client, service.origin)
            with pytest.raises(ConnectionError):
                await post(client, service.origin)
            return len(service.received), service.connections

    assert asyncio.run(sent()) == (len(earlier) + 1, 1)


def test_a_connection_that_the_push_service_closed_while_idle_is_not_used():
    async def answer_and_close(reader, writer):
        await answer()(reader, writer)
        writer.close()

    async def sent():
        async with PushService(answer_and_close) as service, http_client() as client:
            await post(client, service.origin)
            [origin] = client._origins.values()
            await until_true(lambda: not origin._idle[0].is_reusable)
            status = (await post(client, service.origin)).status
            return status, service.connections, len(origin._connections)

    assert asyncio.run(sent()) == (201, 2, 1)


@pytest.mark.parametrize(
    "last",
    [
        b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 201 Created\r\nContent-Length: 0\r\n\r\n",
        OK + b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
        OK + b"\0",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    ],
)
def test_a_connection_whose_end_was_announced_or_is_unclear_is_not_used_again(last):
    async def sent():
        behave = in_turn(raw(last), answer(404))
        async with PushService(behave) as service, http_client() as client:
            first = await post(client, service.origin)
            second = await post(client, service.origin)
            return first.status in {201, 101}, second.status, service.connections

    assert asyncio.run(sent()) == (True, 404, 2)


def test_unrequested_bytes_end_an_idle_connection():
    async def late(_, writer):
        writer.write(OK)
        await writer.drain()
        await more.wait()
        writer.write(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")

    async def sent():
        lasting = http_client(keepalive=60.0)
        async with PushService(in_turn(late, answer())) as service, lasting as client:
            await post(client, service.origin)
            more.set()
            await asyncio.wait_for(service.ended.wait(), SECONDS)
            return (await post(client, service.origin)).status, service.connections

    more = asyncio.Event()
    assert asyncio.run(sent()) == (201, 2)


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
def test_the_late_answer_of_a_request_that_was_given_up_goes_to_no_other_request(how, monkeypatch):
    async def late(reader, writer):
        await given_up.wait()
        await answer(410)(reader, writer)

    async def sent():
        alone = http_client(connections_per_origin=1)
        async with PushService(in_turn(late, answer(201))) as service, alone as client:
            first = asyncio.ensure_future(post(client, service.origin))
            await asyncio.wait_for(service.asked.wait(), SECONDS)
            if how == "cancelled":
                first.cancel()
            else:  # its time is over
                loop = asyncio.get_running_loop()
                monkeypatch.setattr(loop, "time", lambda: time.monotonic() + SECONDS)
            await asyncio.wait([first])
            second = asyncio.ensure_future(post(client, service.origin))
            await asyncio.wait([second], timeout=1.0)  # on a shared connection, it would wait
            given_up.set()
            return (await second).status, service.connections

    given_up = asyncio.Event()
    assert asyncio.run(sent()) == (201, 2)


@pytest.mark.parametrize("seconds", [(0.3, 0.6), (SECONDS, 0.3)], ids=["later", "sooner"])
def test_each_request_of_a_kept_connection_has_its_own_time(seconds):
    """The connection's timer was set for the first one."""
    answered, unanswered = seconds

    async def sent():
        async with PushService(in_turn(answer(), hang)) as service, http_client() as client:
            await post(client, service.origin, seconds=answered)
            second = asyncio.ensure_future(post(client, service.origin, seconds=unanswered))
            await asyncio.wait([second], timeout=SECONDS / 2)
            return second.done() and type(second.exception()), service.connections

    assert asyncio.run(sent()) == (TimeoutError, 1)


def test_requests_beyond_the_limit_of_connections_wait_no_longer_than_their_time():
    async def sent():
        alone = http_client(connections_per_origin=1)
        async with PushService(hang) as service, alone as client:
            first = asyncio.ensure_future(post(client, service.origin))
            await service.asked.wait()
            with pytest.raises(TimeoutError):
                await post(client, service.origin, seconds=0.2)
            first.cancel()
            await asyncio.wait([first])
            return len(service.received)

    assert asyncio.run(sent()) == 1


def test_a_request_that_fails_passes_its_place_to_the_next():
    async def sent():
        alone = http_client(connections_per_origin=1)
        async with PushService(in_turn(hang_up, hang_up, answer())) as service, alone as client:
            posts = [post(client, service.origin) for _ in range(4)]
            results = await asyncio.gather(*posts, return_exceptions=True)
        return [getattr(each, "status", type(each)) for each in results]

    assert asyncio.run(sent()) == [NoResponseError, NoResponseError, 201, 201]


def test_a_request_that_is_cancelled_as_its_turn_comes_passes_its_place_to_the_next(monkeypatch):
    async def wait_for_others(reader, writer):
        await are_waiting.wait()
        await answer()(reader, writer)

    async def sent():
        alone = http_client(connections_per_origin=1)
        async with PushService(in_turn(wait_for_others, answer())) as service, alone as client:
            posts = [asyncio.create_task(post(client, service.origin)) for _ in range(3)]
            await asyncio.wait_for(service.asked.wait(), SECONDS)
            [origin] = client._origins.values()
            leave = origin._leave

            def leave_and_cancel_the_second():
                leave()
                posts[1].cancel()

            monkeypatch.setattr(origin, "_leave", leave_and_cancel_the_second)
            are_waiting.set()
            results = await asyncio.gather(*posts, return_exceptions=True)
        return [getattr(each, "status", type(each)) for each in results]

    are_waiting = asyncio.Event()
    assert asyncio.run(sent()) == [201, asyncio.CancelledError, 201]


def test_an_idle_connection_ends_and_its_origin_is_forgotten():
    async def sent():
        async with PushService(answer()) as service, http_client(keepalive=0.1) as client:
            await post(client, service.origin)
            await asyncio.wait_for(service.ended.wait(), SECONDS)
            await until_true(lambda: not client._origins)
            return (await post(client, service.origin)).status

    assert asyncio.run(sent()) == 201


def test_an_answer_before_the_request_was_read_counts():
    """A server that refuses a body may answer and close without reading it."""

    async def early():
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            async with http_client() as client:
                url = f"http://127.0.0.1:{listening.getsockname()[1]}"
                sent = asyncio.ensure_future(post(client, url, body=bytes(4_000)))
                taken, _ = await loop.sock_accept(listening)
                await loop.sock_sendall(
                    taken, b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
                )
                taken.close()  # unread bytes make this a reset
                return (await sent).status

    assert asyncio.run(early()) == 413


def test_an_interim_answer_is_skipped_with_its_headers():
    interim = b"HTTP/1.1 103 Early Hints\r\nLocation: /wrong\r\n\r\n"
    final = b"HTTP/1.1 201 Created\r\nLocation: /m/1\r\nContent-Length: 0\r\n\r\n"

    async def sent():
        async with PushService(raw(interim + final)) as service, http_client() as client:
            answers = [await post(client, service.origin) for _ in range(2)]
            return answers, service.connections

    answers, connections = asyncio.run(sent())
    assert [dict(each.headers)["Location"] for each in answers] == ["/m/1", "/m/1"]
    assert connections == 1


def test_an_answer_may_arrive_byte_by_byte_and_its_trailers_are_no_headers():
    whole = (
        b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\nreTRY-after: 7\r\n\r\n"
        b"2\r\nno\r\n3\r\npe!\r\n0\r\nX-Late: 1\r\n\r\n"
    )

    async def drip(_, writer):
        for byte in whole:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)

    async def sent():
        async with PushService(drip) as service, http_client() as client:
            answers = [await post(client, service.origin) for _ in range(2)]
            return answers, service.connections

    answers, connections = asyncio.run(sent())
    for each in answers:
        assert (each.status, each.body) == (400, b"nope!")
        assert each.headers.get("Retry-After") == "7"
        assert "X-Late" not in each.headers
    assert connections == 1


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/ HTTP/1.1\r\nX-Evil: 1\r\nX:", {}),
        ("/a b", {}),
        ("/\u00e9", {}),
        ("/", {"Topic": "a\r\nX-Evil: 1"}),
        ("/", {"Topic": "a\nX-Evil: 1"}),
        ("/", {"Topic": "a\0"}),
        ("/", {"Topic": "\u0159"}),
        ("/", {"A: 1\r\nTopic": "a"}),
    ],
)
def test_nothing_in_a_request_can_become_another_header_or_request(path, headers):
    async def sent():
        async with PushService(answer()) as service, http_client() as client:
            with pytest.raises(ValueError, match="a character"):
                await post(client, service.origin + path, **headers)
            return len(service.received)

    assert asyncio.run(sent()) == 0


def test_simultaneous_requests_share_a_name_look_up():
    async def sent():
        asked = []

        async def look_up(host, port):
            asked.append(host)
            await asyncio.sleep(0)
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

        async with PushService(answer()) as service, http_client(look_up=look_up) as client:
            url = f"http://push.example.org:{service.port}/"
            answers = await asyncio.gather(*(post(client, url) for _ in range(4)))
            return {each.status for each in answers}, len(asked), service.received[0].headers

    statuses, asked, headers = asyncio.run(sent())
    assert (statuses, asked) == ({201}, 1)
    assert headers["Host"].startswith("push.example.org:")


def test_a_request_whose_time_is_over_does_not_end_the_look_up_of_others():
    async def sent():
        may_answer = asyncio.Event()

        async def look_up(_, port):
            await may_answer.wait()
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

        async with PushService(answer()) as service, http_client(look_up=look_up) as client:
            url = f"http://push.example.org:{service.port}/"
            patient = asyncio.ensure_future(post(client, url))
            with pytest.raises(TimeoutError):
                await post(client, url, seconds=0.1)
            may_answer.set()
            return (await patient).status

    assert asyncio.run(sent()) == 201


def test_a_name_that_was_not_found_is_looked_up_again_for_the_next_request():
    async def sent():
        asked = []

        async def look_up(host, _):
            asked.append(host)
            raise socket.gaierror(socket.EAI_NONAME, "no such name")

        async with http_client(look_up=look_up) as client:
            for _ in range(2):
                with pytest.raises(socket.gaierror):
                    await post(client, "https://push.example.org/")
        return len(asked)

    assert asyncio.run(sent()) == 2


@pytest.mark.parametrize(
    "headers",
    [
        b"A: b\nContent-Length: 0\n\n",
        b"A: \x01\r\nContent-Length: 0\r\n\r\n",
        b"A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_an_answer_with_odd_headers_counts(headers):
    """The push service has taken the message, so it must not be sent again."""

    async def sent():
        behave = raw(b"HTTP/1.1 201 Created\r\n" + headers)
        async with PushService(behave) as service, http_client() as client:
            return (await post(client, service.origin)).status

    assert asyncio.run(sent()) == 201


def test_an_interim_status_is_no_answer():
    async def hang_up_after(reader, writer):
        writer.write(b"HTTP/1.1 100 Continue\r\nA: \x01\r\n\r\n")
        writer.close()

    async def sent():
        async with PushService(hang_up_after) as service, http_client() as client:
            with pytest.raises(NoResponseError):
                await post(client, service.origin)
            return len(service.received)

    assert asyncio.run(sent()) == 1


def test_requests_in_line_are_not_sent_after_the_client_was_closed():
    async def sent():
        async with PushService(hang) as service, http_client(connections_per_origin=1) as client:
            first = asyncio.create_task(post(client, service.origin))
            second = asyncio.create_task(post(client, service.origin))
            await service.asked.wait()
            await client.close()
            ends = await asyncio.gather(first, second, return_exceptions=True)
            with pytest.raises(ClientClosedError):
                await post(client, service.origin)
            return [isinstance(each, ConnectionError) for each in ends], len(service.received)

    assert asyncio.run(sent()) == ([True, True], 1)


@pytest.mark.parametrize(("dead", "is_reached"), [(1, True), (2, False)])
def test_a_call_tries_two_addresses_of_a_family_at_most(dead, is_reached):
    async def sent():
        async def look_up(_, port):
            hosts = [f"127.0.0.{number}" for number in range(2, 2 + dead)] + ["127.0.0.1"]
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port)) for host in hosts]

        async with PushService(answer()) as service, http_client(look_up=look_up) as client:
            with nullcontext() if is_reached else pytest.raises(ConnectionError):
                await post(client, f"http://push.example.org:{service.port}/")
            return service.connections

    assert asyncio.run(sent()) == int(is_reached)
