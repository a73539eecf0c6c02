"""Faults of PostgreSQL."""

import signal
import time

# The tables that the pipeline writes most. A backup or a careless migration locks such a table.
_LOCKED = "LOCK notifications_app_delivery IN EXCLUSIVE MODE"
_CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < %s
"""


def restart(system):
    """As an operator does: sessions end, a checkpoint is written, then PostgreSQL starts again."""
    system.restart_postgres(signal.SIGINT)


def crash(system):
    """Without a checkpoint: PostgreSQL recovers commits from its log."""
    system.restart_postgres(signal.SIGQUIT)


def cut(system, share=0.7):
    """Ends some of the sessions, at any point of their transactions."""
    system.rows(_CUT, [share])


def lock(system, seconds):
    """Prevents writes of outcomes and plans for so many seconds."""
    with system.connect() as connection:
        connection.execute(_LOCKED)
        time.sleep(seconds)
