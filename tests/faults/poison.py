"""Faults of our own, put into workers on purpose, that a certain answer of a push service triggers.

An answer with certain words ends the worker's process, as a crash in a library would, or becomes an
outcome that breaks the code that reads it. Only `test_poison.py` has such answers.

No public host is looked up, so that no test depends on the machine's resolver.
"""

import os
import signal
import socket

from django.apps import AppConfig

KILLS = "ends the process"
BREAKS = "has no time"


class Poison(AppConfig):
    name = "tests.faults"
    label = "faults"

    def ready(self):
        from notifications_app.delivery.types import Deferred
        from notifications_app.delivery.webpush import transport as webpush

        healthy = webpush.classify

        def classify(response, now):
            if KILLS.encode() in response.body:
                os.kill(os.getpid(), signal.SIGKILL)
            if BREAKS.encode() in response.body:
                return Deferred("throttled", retry_after=float("inf"))
            return healthy(response, now)

        webpush.classify = classify
        look_up = socket.getaddrinfo

        def only_ours(host, *arguments, **options):
            if str(host).endswith(".com"):
                raise socket.gaierror(socket.EAI_NONAME, f"{host} does not exist here")
            return look_up(host, *arguments, **options)

        socket.getaddrinfo = only_ours
