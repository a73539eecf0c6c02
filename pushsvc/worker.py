"""Starts a worker: `python -m pushsvc.worker web`.

It is `celery -A pushsvc worker` with our options. Celery's command line also loads modules for its
interactive commands, which are a tenth of a worker's memory.
"""

import argparse
import socket
import sys
from typing import Any, Final

from django.conf import settings

from pushsvc.celery import app

_QUEUES: Final = {
    "plan": ["plan", "tick"],
    "web": ["web"],
    "android": ["android"],
    "ios": ["ios"],
    "hooks": ["hooks"],
}


def make_worker(kind: str, name: str) -> Any:
    """A worker that has loaded everything it needs, but has started no process."""
    return app.Worker(
        hostname=f"{name}@{socket.gethostname()}",
        queues=_QUEUES[kind],
        concurrency=settings.WORKER_CONCURRENCY,
        optimization="fair",
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pushsvc.worker")
    parser.add_argument("kind", choices=_QUEUES)
    parser.add_argument("--name", help="instead of the kind, if two of a kind run on one host")
    chosen = parser.parse_args()
    worker = make_worker(chosen.kind, chosen.name or chosen.kind)
    # On SIGHUP Celery starts Python with these arguments again; with only the file, Python would
    # not find the package. Not set earlier, because the settings recognise a worker by them.
    sys.argv[:1] = ["-m", "pushsvc.worker"]
    worker.start()
    sys.exit(worker.exitcode)


if __name__ == "__main__":
    main()
