"""Faults of aioapns 4.0: each is shown with the library as published, and absent in our transport.

Both talk to the same sandbox over TLS and HTTP/2.
"""

import asyncio
import selectors

import pytest

from tests.delivery.apns.support import Ours, Plain, ended, received, sending


def patience(kind):
    """How long to wait: a second for what the library never ends, and as long as a busy machine
    needs for our transport."""
    return 1.0 if kind is Plain else 10.0


def answer_late(kind, device, seconds):
    """Our transport gets a late answer. The library gets none to its first request, because a busy
    machine could read the answer before the fault."""
    if kind is Plain:
        device.behave("hang", times=1)
    else:
        device.behave("slow", seconds=seconds)


def run(scenario, kind, sandbox, **settings):
    async def whole():
        async with sending(kind, sandbox, **settings) as sender:
            return await scenario(sender)

    return asyncio.run(whole())


@pytest.mark.parametrize(
    ("kind", "expected"), [(Plain, {"BadTopic", "hangs"}), (Ours, {"topic_refused"})]
)
def test_more_than_64_kib_of_error_bodies_do_not_stall_the_connection(sandbox, kind, expected):
    """The window of 65,535 bytes is full after 17 answers."""
    device = sandbox.register()
    body = '{"reason":"BadTopic","more":"' + "x" * 3_824 + '"}'
    assert len(body) * 17 == 65_535
    device.behave("error", status=400, body=body)

    async def scenario(sender):
        return {await ended(sender.send(device), patience(kind)) for _ in range(18)}

    assert run(scenario, kind, sandbox) == expected


@pytest.mark.parametrize(("kind", "expected"), [(Plain, "hangs"), (Ours, "connection_failed")])
def test_a_cancelled_send_does_not_affect_the_others(sandbox, kind, expected):
    given_up, other, reset = (sandbox.register() for _ in range(3))
    given_up.behave("hang")
    other.behave("hang")
    reset.behave("reset", times=1)

    async def scenario(sender):
        first = asyncio.ensure_future(sender.send(given_up))
        second = asyncio.ensure_future(sender.send(other))
        await received(given_up, other)
        first.cancel()
        await asyncio.wait([first])
        third = asyncio.ensure_future(sender.send(reset))
        await received(reset)
        outcome = await ended(second, patience(kind))
        third.cancel()
        return outcome

    assert run(scenario, kind, sandbox) == expected


@pytest.mark.parametrize(("kind", "is_requested_again"), [(Plain, True), (Ours, False)])
def test_a_slow_answer_is_awaited_and_not_requested_again(sandbox, kind, is_requested_again):
    """The library's ten seconds are less than one here. A busy machine may need more of its
    attempts than two."""
    device = sandbox.register()
    answer_late(kind, device, 0.5)
    settings = {"inactivity": 0.4, "attempts": 100} if kind is Plain else {}

    async def scenario(sender):
        return await ended(sender.send(device), 60.0)

    assert run(scenario, kind, sandbox, **settings) == "accepted"
    assert (len(device.receipts) > 1) is is_requested_again


@pytest.mark.parametrize(
    ("mode", "options", "outcome"),
    [
        ("rst_stream", {}, "stream_reset"),
        ("header_only", {"status": 400}, "foreign_answer"),
        ("header_only", {"status": 503}, "service_error"),
        ("no_apns_id", {}, "accepted"),
    ],
)
@pytest.mark.parametrize("kind", [Plain, Ours])
def test_an_answer_of_another_shape_is_an_answer(sandbox, kind, mode, options, outcome):
    device = sandbox.register()
    device.behave(mode, **options)

    async def scenario(sender):
        return await ended(sender.send(device), patience(kind))

    assert run(scenario, kind, sandbox) == ("hangs" if kind is Plain else outcome)


@pytest.mark.parametrize(
    ("kind", "expected"), [(Plain, ("MaxAttemptsExceeded", 1)), (Ours, ("accepted", 1))]
)
def test_an_empty_data_frame_does_not_end_the_connection(sandbox, kind, expected):
    slow, odd = sandbox.register(), sandbox.register()
    answer_late(kind, slow, 2.0)
    odd.behave("empty_data", status=400)
    settings = {"attempts": 1} if kind is Plain else {}

    async def scenario(sender):
        in_flight = asyncio.ensure_future(sender.send(slow))
        await received(slow)
        await ended(sender.send(odd), patience(kind))
        return await ended(in_flight), sandbox.connection_count

    assert run(scenario, kind, sandbox, **settings) == expected


@pytest.mark.parametrize(("kind", "expected"), [(Plain, ("accepted", 2)), (Ours, ("accepted", 1))])
def test_goaway_lets_calls_in_flight_be_answered(sandbox, kind, expected):
    slow, last = sandbox.register(), sandbox.register()
    answer_late(kind, slow, 2.0)
    last.behave("goaway_first", seconds=0.1, times=1)

    async def scenario(sender):
        in_flight = asyncio.ensure_future(sender.send(slow))
        await received(slow)
        await ended(sender.send(last))
        return await ended(in_flight), len(slow.receipts)

    assert run(scenario, kind, sandbox) == expected


@pytest.mark.parametrize(("kind", "tokens"), [(Plain, 2), (Ours, 1)])
def test_all_connections_present_the_same_token(narrow, kind, tokens):
    hanging, other = narrow.register(), narrow.register()
    hanging.behave("hang")

    async def scenario(sender):
        occupying = asyncio.ensure_future(sender.send(hanging))
        await received(hanging)
        assert await ended(sender.send(other)) == "accepted"
        occupying.cancel()

    run(scenario, kind, narrow, max_connections=2)
    sent = [*hanging.receipts, *other.receipts]
    assert len({receipt.connection for receipt in sent}) == 2
    assert len({receipt.headers["authorization"] for receipt in sent}) == tokens


class CountingSelector(selectors.DefaultSelector):
    wakes = 0

    def select(self, timeout=None):
        self.wakes += 1
        return super().select(timeout)


@pytest.mark.parametrize(
    ("kind", "expected", "is_polling"), [(Plain, "hangs", True), (Ours, "accepted", False)]
)
def test_a_send_that_waits_for_a_stream_sleeps_until_one_is_free(
    narrow, kind, expected, is_polling
):
    hanging = narrow.register()
    hanging.behave("hang")

    async def whole():
        async with sending(kind, narrow, max_connections=1) as sender:
            ahead = asyncio.ensure_future(sender.send(hanging))
            await received(hanging)
            waiting = asyncio.ensure_future(sender.send(narrow.register()))
            before = selector.wakes
            await asyncio.sleep(0.5)
            wakes = selector.wakes - before
            ahead.cancel()
            return await ended(waiting, patience(kind)), wakes

    selector = CountingSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        outcome, wakes = runner.run(whole())
    assert outcome == expected
    assert (wakes > 10) is is_polling


@pytest.mark.parametrize(("kind", "expected"), [(Plain, "hangs"), (Ours, "accepted")])
def test_a_connection_continues_after_the_server_allows_fewer_streams(sandbox, kind, expected):
    """A ninth fault: the library counts no streams as left."""
    limiting = sandbox.register()
    limiting.behave("streams", streams=1)

    async def scenario(sender):
        await sender.send(limiting)
        return await ended(sender.send(sandbox.register()), patience(kind))

    assert run(scenario, kind, sandbox, max_connections=1) == expected
