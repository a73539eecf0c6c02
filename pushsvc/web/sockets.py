"""Limits the web process's connections: open files, and the time in which a client reads
nothing."""

import os
import resource
import socket
import stat
import sys
from contextlib import suppress
from functools import cache
from typing import Final

UNREAD_SECONDS: Final = 20
_OTHER_FILES: Final = 256  # database connections, Redis, logs, the event loop


def require_files(connections: int) -> None:
    """Raises this process's limit of open files for this many connections. Ends the process if that
    is not allowed.

    Without a free file, the server would retry to accept connections in a loop that uses all CPU.
    """
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        sys.exit(
            f"A process may open {hard} files, but WEB_CONNECTIONS={connections} needs {needed}."
            " Raise the hard limit (ulimit -Hn, LimitNOFILE), or lower WEB_CONNECTIONS."
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@cache
def end_unread_connections() -> None:
    """Makes the kernel end connections whose peer reads nothing of a response for UNREAD_SECONDS.

    granian has no such timeout and cannot set socket options. So the option is set on the listening
    socket, and accepted sockets inherit it. Linux only.
    """
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            _limit_listener(int(descriptor))


def _limit_listener(descriptor: int) -> None:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return
    with socket.socket(fileno=os.dup(descriptor)) as found:
        if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_SECONDS * 1000)
