"""Makes calls: in the thread, or in the event loop. Descriptors give both the same methods."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import urlsplit
from uuid import UUID

import httpx

from pushsvc_client.calls import (
    Answer,
    Call,
    Pages,
    Patience,
    Pause,
    Reading,
    Steps,
    answered,
    attempts,
)
from pushsvc_client.imports import Import, imported
from pushsvc_client.version import VERSION

P = ParamSpec("P")
T = TypeVar("T")


def steps(call: Call[T], patience: Patience) -> Steps[T]:
    if isinstance(call, Import):
        summed: Any = imported(call, patience)
        return summed  # type: ignore[no-any-return] # an Import is a Call[ImportOutput]
    return answered(call, patience)


class Connection:
    """The options of a client. A subclass opens `_http`."""

    _http: httpx.Client | httpx.AsyncClient

    def __init__(
        self,
        url: str,
        *,
        channel: str,
        key: str,
        timeout: float = 30.0,
        retries: int = 4,
        longest_wait: float = 60.0,
    ) -> None:
        self.channel = _channel_id(channel)
        self._patience = Patience(retries, longest_wait)
        headers = {
            "Authorization": f"Key {key}",
            "X-Channel-ID": self.channel,
            "Content-Type": "application/json",
            "User-Agent": f"pushsvc-client-python/{VERSION}",
        }
        self._open(base_url=_address(url), headers=headers, timeout=timeout)

    def _open(self, **options: Any) -> None:
        raise NotImplementedError

    def _request(self, call: Call[Any]) -> httpx.Request:
        return self._http.build_request(
            call.method, call.path, content=call.content, params=call.query, headers=call.headers
        )


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{url!r} is no address: write it as https://push.example.com")
    return url


def _channel_id(channel: str) -> str:
    try:
        return str(UUID(str(channel)))
    except ValueError:
        raise ValueError(
            f"channel={channel!r} is no channel id: it is a UUID, and the console shows it"
        ) from None


class Blocking(Connection):
    _http: httpx.Client

    def _open(self, **options: Any) -> None:
        self._http = httpx.Client(**options)

    def _run(self, steps: Steps[T]) -> T:
        came: Answer = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as done:
                value: T = done.value
                return value
            came = self._do(step)

    def _do(self, step: Call[Any] | Pause) -> Answer:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.send(self._request(step))
        except httpx.TransportError as error:
            return error

    def _call(self, call: Call[T]) -> T:
        return self._run(steps(call, self._patience))

    def _entries(self, reading: Reading[T]) -> Iterator[T]:
        while reading.call:
            yield from reading.entries(self._run(attempts(reading.call, self._patience)))


class Awaiting(Connection):
    _http: httpx.AsyncClient

    def _open(self, **options: Any) -> None:
        self._http = httpx.AsyncClient(**options)

    async def _run(self, steps: Steps[T]) -> T:
        came: Answer = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as done:
                value: T = done.value
                return value
            came = await self._do(step)

    async def _do(self, step: Call[Any] | Pause) -> Answer:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.send(self._request(step))
        except httpx.TransportError as error:
            return error

    def _call(self, call: Call[T]) -> Awaitable[T]:
        return self._run(steps(call, self._patience))

    async def _entries(self, reading: Reading[T]) -> AsyncIterator[T]:
        while reading.call:
            answer = await self._run(attempts(reading.call, self._patience))
            for entry in reading.entries(answer):
                yield entry


class operation(Generic[P, T]):  # noqa: N801 - used as a decorator
    """A method that returns a Call, as a method that makes it. An asynchronous client's method is
    to be awaited."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> "operation[P, T]": ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self
        describe = self._describe.__get__(client)

        @wraps(describe)
        def made(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client._call(describe(*args, **kwargs))  # noqa: SLF001 - of the same module

        return made


class listing(Generic[P, T]):  # noqa: N801 - used as a decorator
    """A method that returns Pages, as a method that returns an iterator over their entries."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Pages[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> "listing[P, T]": ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self
        describe = self._describe.__get__(client)

        @wraps(describe)
        def made(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client._entries(Reading(describe(*args, **kwargs)))  # noqa: SLF001 - as above

        return made
