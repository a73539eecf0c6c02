"""The kind of this process. The settings use it to decide what the process loads."""

import sys
from pathlib import PurePath


def is_worker() -> bool:
    """Whether this process was started as `python -m pushsvc.worker …`, or as a worker with
    Celery's own command."""
    return PurePath(sys.argv[0]).parts[-2:] == ("pushsvc", "worker.py") or _is_celery("worker")


def is_beat() -> bool:
    """Whether this process was started as beat with Celery's own command."""
    return _is_celery("beat")


def _is_celery(command: str) -> bool:
    program = PurePath(sys.argv[0])
    return "celery" in (program.name, program.parent.name) and command in sys.argv[1:]
