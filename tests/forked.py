"""Starts the Procfile's processes, without importing all libraries again for each.

The libraries take a second of processor time, and tests start hundreds of processes. So a process
that has imported them (`tests.nursery`) forks each process that a test wants. tests/ops starts the
same commands with exec(2), and judges what they load. One thing differs: all processes that a test
starts have the same hash seed, so a set of texts has the same order in each.
"""

import atexit
import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

from tests import leftovers
from tests.nursery import MESSAGE_BYTES

CHECKOUT = Path(__file__).resolve().parent.parent
_KEPT_VARIABLES = ("PATH", "HOME", "LANG")
_SHARED = "TESTS_NURSERY"  # the path of a nursery's socket


class Process:
    """A running process. Its members mean what they mean in subprocess.Popen."""

    def __init__(self, command, answers):
        self.args = command
        self.pid = int(answers.recv(MESSAGE_BYTES))
        self.returncode = None
        self._answers = answers
        weakref.finalize(self, answers.close)  # at the end only, because several threads may wait

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout=None):
        if self.returncode is None:
            self._answers.settimeout(timeout)
            try:
                self.returncode = int(self._answers.recv(MESSAGE_BYTES, socket.MSG_PEEK))
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(self.args, timeout) from None
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)


def procfile(folder=CHECKOUT):
    """The commands, by the names of their processes."""
    lines = (folder / "Procfile").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def start(command, environment, log, folder=CHECKOUT):
    """Does what Popen(["/bin/sh", "-c", f"exec {command}"], ...) does, in a session of its own.
    `folder`: the checkout whose code runs."""
    words = subprocess.run(
        ["/bin/sh", "-c", rf"printf '%s\0' {command}"],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout.split("\0")[:-1]
    order = {"words": words, "environment": dict(environment), "folder": str(folder)}
    answers, of_nursery = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with of_nursery:
        socket.send_fds(
            _nursery(), [json.dumps(order).encode()], [log.fileno(), of_nursery.fileno()]
        )
    process = Process(command, answers)
    leftovers.end_group_with_us(process.pid)
    return process


def run(command, environment, *, timeout):
    """The exit code of the command, which has ended, and all that it wrote."""
    with tempfile.TemporaryFile() as log:
        code = start(command, environment, log).wait(timeout=timeout)
        log.seek(0)
        return code, log.read().decode()


def share_nursery(folder):
    """Starts a nursery for this process and for those that it starts from now on."""
    path = str(folder / "nursery")
    _start_nursery(path)
    os.environ[_SHARED] = path
    _nursery()  # so that it runs until this process ends


@functools.cache
def _nursery():
    """The socket that takes orders. The nursery ends when nobody has one any more."""
    if _SHARED in os.environ:
        return _connected(os.environ[_SHARED])
    with tempfile.TemporaryDirectory(prefix="pushsvc-nursery-") as folder:
        _start_nursery(f"{folder}/socket")
        return _connected(f"{folder}/socket")


def _start_nursery(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        nursery = subprocess.Popen(
            [sys.executable, "-u", "-m", "tests.nursery"],
            cwd=CHECKOUT,
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            stdin=listener,
            start_new_session=True,
        )
    leftovers.end_group_with_us(nursery.pid)
    atexit.register(nursery.wait)


def _connected(path):
    orders = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    orders.connect(path)
    atexit.register(orders.close)  # before the wait for the nursery
    return orders
