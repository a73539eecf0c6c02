"""What kind of process this is. Settings decide by it what the process loads."""

import sys
from pathlib import PurePath


def is_worker() -> bool:
    """Whether this process was started as `celery … worker`, or as `python -m celery … worker`."""
    program = PurePath(sys.argv[0])
    is_celery = "celery" in (program.name, program.parent.name)
    return is_celery and "worker" in sys.argv[1:]
