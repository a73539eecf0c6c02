"""What serving takes, whatever the sandbox: an address, and a thread to serve in."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

# How long a stop waits for requests at hand, before it cuts those that hang.
STOP_SECONDS = 0.2
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Sandbox(Protocol):
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


@contextmanager
def served(sandbox: Sandbox) -> Iterator[None]:
    """The sandbox serves in a thread of its own until the block ends."""
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
