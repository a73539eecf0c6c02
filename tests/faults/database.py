"""Faults of PostgreSQL."""

import signal
import time
from contextlib import contextmanager

EVERYBODY = 10**6

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


@contextmanager
def gate(system):
    """Yields `open_to(count)`: planning continues until there are so many recipients, and waits
    there. It waits from the beginning of the block, and ends with it."""

    def open_to(recipients):
        system.rows("UPDATE faults_gate SET recipients = %s", [recipients])

    system.rows(_GATE)
    yield open_to
    open_to(EVERYBODY)
    system.rows("DROP FUNCTION faults_gate CASCADE; DROP TABLE faults_gate")


_GATE = """
CREATE TABLE faults_gate AS SELECT 0 AS recipients;
CREATE FUNCTION faults_gate() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  WHILE old.recipient_count >= (SELECT recipients FROM faults_gate) LOOP
    PERFORM pg_sleep(0.02);
  END LOOP;
  RETURN new;
END $$;
CREATE TRIGGER faults_gate BEFORE UPDATE OF cursor ON notifications_app_plan
FOR EACH ROW EXECUTE FUNCTION faults_gate()
"""
