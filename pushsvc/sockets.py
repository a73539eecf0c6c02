"""What the web process's connections may cost: file descriptors, and time where nobody reads."""

import os
import resource
import socket
import stat
import sys
from contextlib import suppress
from functools import cache
from typing import Final

UNREAD_SECONDS: Final = 20
_OTHER_FILES: Final = 256  # the threads' databases, Redis, logs, the event loop's own


def require_files(connections: int) -> None:
    """Lets this process open a file for each connection. Ends it where the system forbids that.

    A server that may not accept a connection tries again at once, with all the CPU that there is.
    """
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        sys.exit(
            f"A process may open {hard} files here; WEB_CONNECTIONS={connections} takes {needed}:"
            " raise the hard limit (ulimit -Hn, LimitNOFILE), or lower WEB_CONNECTIONS."
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@cache
def end_unread_connections() -> None:
    """The kernel ends a connection whose peer takes nothing of an answer for UNREAD_SECONDS.

    granian has no time for that and no option for sockets. The option is set on the socket that
    listens; accepted ones inherit it. Linux only.
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
