"""What a recipient costs in PostgreSQL, from plan to outcome: WAL, HOT updates, statements and CPU.

For each round one notification to all subscribers is planned and then recorded as delivered, in
this process, without a push service. The database is the bench's own and is thrown away. It runs
without full page writes, so the figures do not depend on checkpoints. CPU is that of this process
and of its database session. DATABASE_URL and REDIS_URL are used where they are set.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from bench.database import own_database

if TYPE_CHECKING:
    from channels_app.models import Channel
    from notifications_app.pipeline.lease import Lease

_PLATFORM = "android"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipients", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--flush", type=int, default=300, help="outcomes in one transaction")
    arguments = parser.parse_args()
    with own_database():
        channel = _subscribers(arguments.recipients)
        for _ in range(arguments.rounds):
            with _measured("plan  ", arguments.recipients):
                _plan(channel)
            with _measured("record", arguments.recipients):
                _record(arguments.flush)


@contextmanager
def _measured(step: str, recipients: int) -> Iterator[None]:
    """Prints what the step cost for each recipient."""
    from django.db import connection

    statements = 0

    def count(execute: Any, *arguments: Any) -> Any:
        nonlocal statements
        statements += 1
        return execute(*arguments)

    before, cpu, began = _database(), time.process_time(), time.perf_counter()
    with connection.execute_wrapper(count):
        yield
    elapsed, cpu, after = time.perf_counter() - began, time.process_time() - cpu, _database()
    spent = {name: after[name] - before[name] for name in after}
    hot = f", HOT {spent['hot'] / spent['updated']:.2f}" if spent["updated"] else ""
    print(
        f"{step}: {elapsed:.2f} s, CPU {1e6 * cpu / recipients:.1f} µs"
        f" + PostgreSQL {1e6 * spent['cpu'] / recipients:.1f} µs,"
        f" WAL {spent['wal'] / recipients:.0f} B, {statements} statements{hot}",
        flush=True,
    )


def _database() -> dict[str, float]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(_FIGURES)
        pid, wal, updated, hot = cursor.fetchone()
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
    return {
        "cpu": sum(map(int, ticks)) / 100,
        "wal": float(wal),
        "updated": float(updated),
        "hot": float(hot),
    }


def _subscribers(count: int) -> "Channel":
    """A channel with so many devices."""
    from django.db import connection

    from channels_app.services import channel_create

    channel = channel_create(name="Bench")
    with connection.cursor() as cursor:
        cursor.execute(_SUBSCRIBERS, {"channel": channel.pk, "count": count})
        cursor.execute("VACUUM ANALYZE")
    return channel


def _plan(channel: "Channel") -> None:
    from django.db.models.functions import Now

    from notifications_app.models import Notification
    from notifications_app.pipeline import planning

    Notification.objects.create(
        channel=channel, body="bench", ttl=3600, target_platforms=[_PLATFORM], scheduled_at=Now()
    )
    while planning.work(seconds=3600):
        pass


def _record(flush: int) -> None:
    from notifications_app.pipeline import batches

    while lease := batches.claim(_PLATFORM, skip=[], processes=1):  # type: ignore[arg-type]
        _deliver(lease, flush)


def _deliver(lease: "Lease", flush: int) -> None:
    from notifications_app.models import Delivery
    from notifications_app.pipeline import outcomes
    from notifications_app.pipeline.transitions import DueDelivery, Transition
    from notifications_app.states import DeliveryStatus

    due = Delivery.objects.due().filter(batch_id=lease.batch_id)
    ids: list[UUID] = list(due.values_list("subscription_id", flat=True))
    changes = [
        Transition(DueDelivery(id_, 0, None, 0), DeliveryStatus.DELIVERED, attempts=1)
        for id_ in ids
    ]
    for start in range(0, len(changes), flush):
        outcomes.record(lease, changes[start : start + flush])


_FIGURES = """
SELECT pg_backend_pid(), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'), n_tup_upd,
  n_tup_hot_upd
FROM pg_stat_user_tables WHERE relname = 'notifications_app_delivery'
"""

# Ids grow with time, as those of real subscriptions do.
_SUBSCRIBERS = """
INSERT INTO subscriptions_app_subscription
  (id, channel_id, platform, address, address_sha256, p256dh, auth, attributes, push_service,
   created_at, registered_at, expired_code, is_proven, is_set_aside)
SELECT (lpad(to_hex(number), 12, '0') || '7' || substr(md5(number::text), 1, 3) || '8'
        || substr(md5(number::text), 4, 15))::uuid,
  %(channel)s, 'android', 'token-' || number, sha256(number::text::bytea), '', '', '{}', 'fcm_v1',
  now(), now(), '', true, false
FROM generate_series(1, %(count)s) AS number
"""


if __name__ == "__main__":
    main()
