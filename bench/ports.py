"""Ports for the servers that benches and tests start."""

import fcntl
import os
import socket
import tempfile
from pathlib import Path
from typing import Final

# Below those that the kernel chooses from.
_FIRST: Final = 20_000
_COUNT: Final = 12_000
_LAST: Final = Path(tempfile.gettempdir()) / f"pushsvc-last-port-{os.getuid()}"


def own_port(count: int = 1) -> int:
    """The first of so many consecutive free loopback ports, which the next thousands of calls, also
    in other processes, do not return. Raises RuntimeError if there are none.

    Two processes that ask the kernel for a free port can get the same one, until the first listens
    on it. Two granians would then share it without an error, because they set SO_REUSEPORT, and
    each would answer requests for the other.
    """
    with _LAST.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        port = _free_after(int(file.read() or _FIRST), count)
        file.truncate(0)
        file.write(str(port + count - 1))
    return port


def _free_after(last: int, count: int) -> int:
    for step in range(1, _COUNT + 1):
        port = _FIRST + (last - _FIRST + step) % _COUNT
        if all(map(_is_free, range(port, port + count))):
            return port
    raise RuntimeError(f"too few ports from {_FIRST} to {_FIRST + _COUNT - 1} are free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
