"""The clients. Both make the same calls; one waits in its thread, the other in its event loop."""

import asyncio
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self, Unpack

import httpx

from pushsvc_client import calls
from pushsvc_client.types import (
    FINAL,
    ChannelPlatforms,
    ChannelStatistics,
    Message,
    Notification,
    NotificationDetails,
    Sent,
)

_POLL_SECONDS: Final = 1.0


class _BaseClient:
    def __init__(
        self, url: str, *, channel: str, key: str, timeout: float = 30.0, retries: int = 4
    ) -> None:
        self.channel = channel
        self._retries = retries
        self._open(base_url=url, headers={"Authorization": f"Key {key}"}, timeout=timeout)

    def _open(self, **options: Any) -> None:
        raise NotImplementedError


class Client(_BaseClient):
    """One channel of a service. Keeps connections open; close it, or use it in a `with`.

    Every call is repeated up to `retries` times if the service says that this may help, after the
    time that it names. Raises `Refused` or `Unreachable`.
    """

    def _open(self, **options: Any) -> None:
        self._http = httpx.Client(**options)

    def send(self, *, idempotency_key: str | None = None, **message: Unpack[Message]) -> Sent:
        """Give your own key if your program may be restarted in the middle."""
        sent: Sent = self._run(calls.send(message, idempotency_key))
        return sent

    def notification(self, notification_id: str) -> Notification:
        shown: Notification = self._run(calls.notification(notification_id))
        return shown

    def details(self, notification_id: str) -> NotificationDetails:
        """Counts by platform, why recipients bounced, and what is set."""
        shown: NotificationDetails = self._run(calls.details(notification_id))
        return shown

    def wait(self, notification_id: str, *, seconds: float = 300.0) -> Notification:
        """The notification once it is sent, failed or cancelled. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while (shown := self.notification(notification_id))["status"] not in FINAL:
            _check(deadline, notification_id)
            time.sleep(_POLL_SECONDS)
        return shown

    def notifications(self, *, limit: int = 50, offset: int = 0) -> list[Notification]:
        """Newest first."""
        listed: list[Notification] = self._run(calls.notifications(self.channel, limit, offset))
        return listed

    def cancel(self, notification_id: str) -> None:
        self._run(calls.cancel(notification_id))

    def pause(self, notification_id: str) -> None:
        self._run(calls.pause(notification_id))

    def resume(self, notification_id: str) -> None:
        self._run(calls.resume(notification_id))

    def stop(self, notification_id: str) -> None:
        """Ends it. Recipients that were not sent to bounce."""
        self._run(calls.stop(notification_id))

    def statistics(self) -> ChannelStatistics:
        read: ChannelStatistics = self._run(calls.channel(self.channel))
        return read

    def platforms(self) -> ChannelPlatforms:
        """Subscribers, pauses and credentials of each platform."""
        read: ChannelPlatforms = self._run(calls.platforms(self.channel))
        return read

    def subscribe(self, device: Mapping[str, Any]) -> str:
        """`device`: a browser's PushSubscription, or `platform` and `provider_token`. Returns
        its id."""
        return str(self._run(calls.subscribe(self.channel, device))["subscriptionId"])

    def unsubscribe(self, device: Mapping[str, Any]) -> None:
        self._run(calls.unsubscribe(self.channel, device))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, call: calls.Call) -> Any:
        attempts, came = calls.attempts(call, self._retries), None
        while True:
            try:
                step = attempts.send(came)
            except StopIteration as done:
                return done.value
            came = self._do(step)

    def _do(self, step: calls.Call | calls.Pause) -> calls.Answer:
        if isinstance(step, calls.Pause):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.request(
                step.method, step.path, json=step.json, headers=step.headers, params=step.params
            )
        except httpx.TransportError as error:
            return error


class AsyncClient(_BaseClient):
    """As `Client`, for asyncio."""

    def _open(self, **options: Any) -> None:
        self._http = httpx.AsyncClient(**options)

    async def send(self, *, idempotency_key: str | None = None, **message: Unpack[Message]) -> Sent:
        """Give your own key if your program may be restarted in the middle."""
        sent: Sent = await self._run(calls.send(message, idempotency_key))
        return sent

    async def notification(self, notification_id: str) -> Notification:
        shown: Notification = await self._run(calls.notification(notification_id))
        return shown

    async def details(self, notification_id: str) -> NotificationDetails:
        """Counts by platform, why recipients bounced, and what is set."""
        shown: NotificationDetails = await self._run(calls.details(notification_id))
        return shown

    async def wait(self, notification_id: str, *, seconds: float = 300.0) -> Notification:
        """The notification once it is sent, failed or cancelled. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while (shown := await self.notification(notification_id))["status"] not in FINAL:
            _check(deadline, notification_id)
            await asyncio.sleep(_POLL_SECONDS)
        return shown

    async def notifications(self, *, limit: int = 50, offset: int = 0) -> list[Notification]:
        """Newest first."""
        call = calls.notifications(self.channel, limit, offset)
        listed: list[Notification] = await self._run(call)
        return listed

    async def cancel(self, notification_id: str) -> None:
        await self._run(calls.cancel(notification_id))

    async def pause(self, notification_id: str) -> None:
        await self._run(calls.pause(notification_id))

    async def resume(self, notification_id: str) -> None:
        await self._run(calls.resume(notification_id))

    async def stop(self, notification_id: str) -> None:
        """Ends it. Recipients that were not sent to bounce."""
        await self._run(calls.stop(notification_id))

    async def statistics(self) -> ChannelStatistics:
        read: ChannelStatistics = await self._run(calls.channel(self.channel))
        return read

    async def platforms(self) -> ChannelPlatforms:
        """Subscribers, pauses and credentials of each platform."""
        read: ChannelPlatforms = await self._run(calls.platforms(self.channel))
        return read

    async def subscribe(self, device: Mapping[str, Any]) -> str:
        """`device`: a browser's PushSubscription, or `platform` and `provider_token`. Returns
        its id."""
        return str((await self._run(calls.subscribe(self.channel, device)))["subscriptionId"])

    async def unsubscribe(self, device: Mapping[str, Any]) -> None:
        await self._run(calls.unsubscribe(self.channel, device))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, call: calls.Call) -> Any:
        attempts, came = calls.attempts(call, self._retries), None
        while True:
            try:
                step = attempts.send(came)
            except StopIteration as done:
                return done.value
            came = await self._do(step)

    async def _do(self, step: calls.Call | calls.Pause) -> calls.Answer:
        if isinstance(step, calls.Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.request(
                step.method, step.path, json=step.json, headers=step.headers, params=step.params
            )
        except httpx.TransportError as error:
            return error


def _check(deadline: float, notification_id: str) -> None:
    if time.monotonic() >= deadline:
        raise TimeoutError(f"notification {notification_id} is not finished")
