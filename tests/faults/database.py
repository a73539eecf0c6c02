"""What can happen to PostgreSQL."""

import signal
import time

# What the pipeline writes most; a backup or a careless migration locks such a table.
_LOCKED = "LOCK notifications_app_delivery IN EXCLUSIVE MODE"
_CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < %s
"""


def restart(system):
    """As an operator does: sessions end, then a checkpoint, then it is back."""
    system.restart_postgres(signal.SIGINT)


def crash(system):
    """Without a checkpoint: what was committed comes from its log."""
    system.restart_postgres(signal.SIGQUIT)


def cut(system, share=0.7):
    """Ends some of the sessions, wherever they are in their transactions."""
    system.rows(_CUT, [share])


def lock(system, seconds):
    """Nobody writes outcomes or plans for so long."""
    with system.connect() as connection:
        connection.execute(_LOCKED)
        time.sleep(seconds)
