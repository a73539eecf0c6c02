"""The peers in Python: pywebpush with a session and with asyncio, aioapns and firebase_admin.

bench/peers/__init__.py explains how this program is called.
"""

import asyncio
import json
import ssl
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from typing_extensions import override

Work = dict[str, Any]
Send = Callable[[int], Awaitable[bool]]


def main() -> None:
    library, path, count, in_flight = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:5])
    work: Work = json.loads(path.read_text())
    if library == "pywebpush-session":
        send_all = _pywebpush_session(work, count, in_flight)
    else:
        library_main = {"pywebpush-async": _pywebpush_async, "aioapns": _aioapns}
        library_main |= {"firebase_admin": _firebase_admin}
        chosen = library_main[library]

        def send_all() -> int:
            return asyncio.run(chosen(work, count, in_flight))

    print("ready", flush=True)
    sys.stdin.readline()
    print("failed", send_all(), flush=True)
    sys.stdin.readline()


def _pywebpush_session(work: Work, count: int, in_flight: int) -> Callable[[], int]:
    import requests  # noqa: TID251 - the peer is measured with what its users have
    from pywebpush import webpush

    session = requests.Session()
    session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=in_flight))

    def send(device: dict[str, str]) -> bool:
        claims = {"sub": work["vapid"]["subject"]}
        answer = webpush(
            _subscription(device),
            work["payload"],
            vapid_private_key=work["vapid"]["private"],
            vapid_claims=claims,
            ttl=3600,
            requests_session=session,
        )
        return getattr(answer, "status_code", None) == 201

    def send_all() -> int:
        with ThreadPoolExecutor(in_flight) as threads:
            return count - sum(threads.map(send, work["web"][:count]))

    return send_all


async def _pywebpush_async(work: Work, count: int, in_flight: int) -> int:
    import aiohttp
    from pywebpush import webpush_async

    trusted = ssl.create_default_context(cafile=work["ca"])
    connector = aiohttp.TCPConnector(limit=in_flight, ssl=trusted)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send(number: int) -> bool:
            answer = await webpush_async(
                _subscription(work["web"][number]),
                work["payload"],
                vapid_private_key=work["vapid"]["private"],
                vapid_claims={"sub": work["vapid"]["subject"]},
                ttl=3600,
                aiohttp_session=session,
            )
            return getattr(answer, "status", None) == 201

        return await _all(send, count, in_flight)


async def _aioapns(work: Work, count: int, in_flight: int) -> int:
    from aioapns import APNs, NotificationRequest
    from aioapns.connection import APNsProductionClientProtocol

    host, _, port = work["apns"]["origin"].removeprefix("https://").partition(":")
    APNsProductionClientProtocol.APNS_SERVER = host
    APNsProductionClientProtocol.APNS_PORT = int(port)
    key = Path(work["apns"]["key_file"]).read_text()  # noqa: ASYNC240 - before anything is sent
    trusted = ssl.create_default_context(cafile=work["ca"])
    trusted.set_alpn_protocols(["h2"])
    client = APNs(
        key=key,
        key_id=work["apns"]["key_id"],
        team_id=work["apns"]["team_id"],
        topic=work["apns"]["topic"],
        max_connections=1,
        ssl_context=trusted,
    )
    message = json.loads(work["payload"])

    async def send(number: int) -> bool:
        request = NotificationRequest(
            device_token=work["tokens"][number], message=message, time_to_live=3600
        )
        answer = await client.send_notification(request)
        return bool(answer.is_successful)

    return await _all(send, count, in_flight)


async def _firebase_admin(work: Work, count: int, in_flight: int) -> int:
    """`send_each_async` takes up to 500 messages, and sends them all at once."""
    import firebase_admin
    from firebase_admin import messaging
    from google.auth.credentials import Credentials

    class Granted(Credentials):
        """An access token. A service account would also look for Google's metadata server."""

        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.token = work["fcm"]["token"]

        @override
        def refresh(self, _request: object) -> None:
            raise RuntimeError("the token needs no refresh")

    url = work["fcm"]["origin"] + "/v1/projects/{0}/messages:send"
    messaging._MessagingService.FCM_URL = url
    firebase_admin.initialize_app(Granted(), {"projectId": work["fcm"]["project"]})
    data = json.loads(work["payload"])
    failed = 0
    for first in range(0, count, in_flight):
        messages = [
            messaging.Message(token=token, data=data)
            for token in work["tokens"][first : min(first + in_flight, count)]
        ]
        failed += (await messaging.send_each_async(messages)).failure_count
    return failed


async def _all(send: Send, count: int, in_flight: int) -> int:
    """Sends all messages, `in_flight` at once. Returns how many failed."""
    numbers = iter(range(count))

    async def send_on() -> int:
        return sum([not await send(number) for number in numbers])

    return sum(await asyncio.gather(*(send_on() for _ in range(in_flight))))


def _subscription(device: dict[str, str]) -> dict[str, Any]:
    keys = {"p256dh": device["p256dh"], "auth": device["auth"]}
    return {"endpoint": device["endpoint"], "keys": keys}


if __name__ == "__main__":
    main()
