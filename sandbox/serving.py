"""What every sandbox needs to serve: an address and a thread."""

import asyncio
import re
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from ipaddress import ip_address
from typing import ParamSpec, Protocol, TypeVar

from aiohttp import web

# How long a stop waits for requests in flight before it cuts them.
STOP_SECONDS = 0.2
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PORT = re.compile(r":\d+$")


class Sandbox(Protocol):
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
P = ParamSpec("P")
S = TypeVar("S", bound=Sandbox)


def running(make: Callable[P, S]) -> Callable[P, AbstractContextManager[S]]:
    """Returns a context manager with the arguments of `make`. The sandbox that `make` returns
    serves in its own thread until the block ends."""

    @contextmanager
    def run(*args: P.args, **kwargs: P.kwargs) -> Iterator[S]:
        sandbox = make(*args, **kwargs)
        with _served(sandbox):
            yield sandbox

    return run


class HttpServer:
    """A server over HTTP/1.1 on one address, with TLS if `ssl_context` is given.

    It binds the address at once and raises OSError if that is in use; port 0 is any free one.
    It responds to requests from `start` to `stop`.
    """

    def __init__(self, host: str, port: int, ssl_context: ssl.SSLContext | None) -> None:
        self._socket = listen(host, port)
        self._ssl_context = ssl_context
        self.origin = origin_of(host, self._socket.getsockname()[1], is_tls=ssl_context is not None)
        self.application = web.Application(middlewares=[_reject_other_hosts])
        self._runner = web.AppRunner(
            self.application,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=STOP_SECONDS,
        )

    async def start(self) -> None:
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket, ssl_context=self._ssl_context).start()

    async def stop(self) -> None:
        """Responds to requests in flight, aborts those that hang, and frees the address."""
        await self._runner.cleanup()
        self._socket.close()


@web.middleware
async def _reject_other_hosts(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Rejects a request whose Host is neither a loopback name nor an IP address. A page that a
    browser on this machine shows could otherwise reach the sandbox through a name that it rebinds
    to this address."""
    name = request.host.rpartition(":")[0] if _PORT.search(request.host) else request.host
    if name != "localhost" and not _is_address(name.strip("[]")):
        raise web.HTTPForbidden(text="The Host header must be localhost or an IP address.")
    return await handler(request)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@contextmanager
def _served(sandbox: Sandbox) -> Iterator[None]:
    """A context in which the sandbox serves in its own thread."""
    with _loop_in_thread() as loop:
        asyncio.run_coroutine_threadsafe(sandbox.start(), loop).result()
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(sandbox.stop(), loop).result()


@contextmanager
def _loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="sandbox", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024)


def origin_of(host: str, port: int, *, is_tls: bool) -> str:
    scheme = "https" if is_tls else "http"
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" + ("" if port == _DEFAULT_PORTS[scheme] else f":{port}")
