"""Measures the processor time of the transports alone, for each message.

Each transport sends to the sink from one event loop, with as many calls in flight as a worker has.
For comparison, bare aiohttp POSTs as many bodies of the same size in the same round. The cost of
the pipeline is the difference to pushsvc's figure in the comparison with peers.
"""

import asyncio
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final
from uuid import UUID, uuid4

import aiohttp

from bench.results import Options, Result, ResultRow
from bench.service import apns_key
from bench.sink import HOST, Sink, find_nginx, running_sink
from bench.work import BODY, TITLE, TOKEN, Work, make_work
from notifications_app.content.values import Content
from notifications_app.delivery.apns.transport import AppKey
from notifications_app.delivery.event_loop import PatientLoop
from notifications_app.delivery.fcm.transport import ServiceAccount
from notifications_app.delivery.registry import ConnectionSettings, make_client
from notifications_app.delivery.types import Accepted, BrowserDestination, Destination, Message
from notifications_app.delivery.webpush.transport import VapidKey
from pushsvc.common.platforms import Platform

_BARE: Final = "bare aiohttp, HTTP/1.1"
_BODY: Final = bytes(430)  # the size of the bench's encrypted message
_KEY_ID: Final = UUID(int=1)

_Send = Callable[[int], Awaitable[None]]


def measure(options: Options) -> Result:
    with (
        tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as folder,
        running_sink(find_nginx()) as sink,
        asyncio.Runner(loop_factory=PatientLoop) as runner,
    ):
        work = make_work(Path(folder), sink, options.messages)
        return runner.run(_measured(sink, work, options))


async def _measured(sink: Sink, work: Work, options: Options) -> Result:
    result = Result(remarks=[f"Sink: {sink.program}."])
    used: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        with result.load.round():
            for name, sender in _senders(sink, work).items():
                async with sender as send:
                    await _all(send, options.in_flight, options.in_flight)  # connects
                    before = time.process_time()
                    await _all(send, options.messages, options.in_flight)
                    seconds = time.process_time() - before
                used.setdefault(name, []).append(1000 * seconds / options.messages)
    bare = used[_BARE]
    for name, each in used.items():
        ratio = median(mine / its for mine, its in zip(each, bare, strict=True))
        result.rows.append(ResultRow(name, "CPU-s / 1,000", each, None if each is bare else ratio))
    return result


async def _all(send: _Send, count: int, in_flight: int) -> None:
    numbers = iter(range(count))

    async def send_on() -> None:
        for number in numbers:
            await send(number)

    await asyncio.gather(*(send_on() for _ in range(in_flight)))


def _senders(sink: Sink, work: Work) -> dict[str, AbstractAsyncContextManager[_Send]]:
    content = work.content
    account = ServiceAccount.parse(Path(content["fcm"]["account_file"]).read_text(), 1)
    tokens = [Destination(uuid4(), token, TOKEN) for token in content["tokens"]]
    vapid = {_KEY_ID: VapidKey(content["vapid"]["private"], content["vapid"]["subject"])}
    app_key = AppKey.parse(apns_key(content["apns"]), 1)
    browsers = [_browser(device) for device in content["web"]]
    return {
        _BARE: _bare(sink),
        "web": _through(Platform.WEB, sink, browsers, vapid),
        "Android": _through(Platform.ANDROID, sink, tokens, account),
        "iOS": _through(Platform.IOS, sink, tokens, app_key),
    }


def _browser(device: dict[str, str]) -> BrowserDestination:
    return BrowserDestination(
        subscription_id=uuid4(),
        address=device["endpoint"],
        token=TOKEN,
        p256dh=device["p256dh"],
        auth=device["auth"],
        vapid_key_id=_KEY_ID,
    )


@asynccontextmanager
async def _bare(sink: Sink) -> AsyncIterator[_Send]:
    tls = ssl.create_default_context(cafile=str(sink.authority))
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send(_number: int) -> None:
            async with session.post(f"{sink.origin}/push/1", data=_BODY) as response:
                await response.read()

        yield send


@asynccontextmanager
async def _through(
    platform: Platform, sink: Sink, destinations: list[Any], keys: object
) -> AsyncIterator[_Send]:
    client = make_client(platform, _connecting(sink))
    content = Content(title=TITLE, body=BODY, ttl=3_600)
    message = Message(uuid4(), content, expires_at=time.monotonic() + 3_600)

    async def send(number: int) -> None:
        outcome = await client.send(message, destinations[number % len(destinations)], keys)
        if not isinstance(outcome, Accepted):
            raise TypeError(f"not accepted: {outcome}")

    try:
        yield send
    finally:
        await client.close()


def _connecting(sink: Sink) -> ConnectionSettings:
    return ConnectionSettings(
        trusted_origins=frozenset({sink.origin}),
        allowed_hosts=(),
        ca_file=str(sink.authority),
        fcm_api_base=sink.origin,
        google_token_uri=f"{sink.origin}/token",
        apns_server=f"{HOST}:{sink.port}",
        call_seconds=60.0,
        unknown_host_call_seconds=60.0,
        calls_in_flight=100,
    )
