"""The process that forks others: see `tests.forked`.

It imports libraries, and nothing that belongs to the project or reads settings. The new process
gets its own environment, session and log, and runs the script that the command names, as after
exec(2).
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import socket
import sys
import zoneinfo
from functools import partial
from pathlib import Path

# Importing them reads no settings and starts no thread. Of the environment, zoneinfo reads a path.
LIBRARIES = (
    "aioapns",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.worker.consumer",
    "cron_descriptor",
    "django.contrib.admin",
    "django.contrib.postgres.fields",
    "django.core.management",
    "django.db.backends.postgresql.base",
    "django.db.migrations.executor",
    "django.views.generic",
    "drf_spectacular.utils",
    "firebase_admin.messaging",
    "granian.cli",
    "httptools",
    "kombu.transport.redis",
    "markdown_it",
    "prometheus_client",
    "psutil",
    "pywebpush",
    "redis.asyncio",
    "rest_framework.serializers",
    "segno",
    "whitenoise.middleware",
)
MESSAGE_BYTES = 200_000
# How many objects are created until the garbage collector runs. By default it is 700, and
# loading or a request makes thousands.
GARBAGE = (50_000, 20, 20)


def _main():
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # else the collector of each process writes to the memory of all
    # A tenth of what such a process does before it is ready was looking for garbage.
    gc.set_threshold(*GARBAGE)
    order = _Nursery(socket.socket(fileno=os.dup(0))).serve()
    os.environ.clear()
    os.environ.update(order["environment"])
    zoneinfo.reset_tzpath()  # it has read PYTHONTZPATH of the nursery
    _enter(order["folder"])
    _run(*order["words"])


def _enter(folder):
    """From now on modules are those of this checkout."""
    os.chdir(folder)
    sys.path[0] = folder
    sys.modules.pop("tests", None)


def _run(program, *arguments):
    """A program that is a Python script, or `python script`, or `python -m module`."""
    if (program, *arguments[:1]) == ("python", "-m"):
        sys.argv = list(arguments[1:])
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(arguments) if program == "python" else [shutil.which(program), *arguments]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


class _Nursery:
    """Takes orders from each process that connects, until none is connected any more."""

    def __init__(self, listener):
        self._listener = listener
        self._clients = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def serve(self):
        """Returns in each forked process, with its order. The nursery itself ends here."""
        while True:
            for key, _ in self._selector.select():
                if order := key.data():
                    return json.loads(order)

    def _accept(self):
        client, _ = self._listener.accept()
        self._clients.add(client)
        self._selector.register(client, selectors.EVENT_READ, partial(self._take, client))

    def _take(self, client):
        """The order, in the forked process."""
        order, descriptors, *_ = socket.recv_fds(client, MESSAGE_BYTES, 2)
        if not order:
            self._leave(client)
            return None
        log, answers = descriptors
        pid = os.fork()
        if pid == 0:
            for each in (self._selector, self._listener, *self._clients):
                each.close()
            _stand_alone(log, answers)
            return order
        os.close(log)
        process = os.pidfd_open(pid)
        ended = partial(self._tell_end, process, pid, answers)
        self._selector.register(process, selectors.EVENT_READ, ended)
        return None

    def _leave(self, client):
        self._selector.unregister(client)
        self._clients.remove(client)
        client.close()
        if not self._clients:
            sys.exit()

    def _tell_end(self, process, pid, answers):
        self._selector.unregister(process)
        os.close(process)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(BrokenPipeError):  # nobody waits for it
            os.write(answers, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(answers)


def _stand_alone(log, answers):
    """A session, standard streams, and nothing else that the nursery has open."""
    os.setsid()
    for descriptor, stream in ((os.open(os.devnull, os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(descriptor, stream)
    os.write(answers, str(os.getpid()).encode())
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


if __name__ == "__main__":
    _main()
