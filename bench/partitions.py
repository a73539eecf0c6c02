"""Measures whether deliveries in a table for each day cost less than in one table for all days.

Deliveries are copied into a table with a partition for each day, by the time in the notification's
id, and a default one. Then the service uses both in turn, under the same name. `named`: with
partitions, and with the notification's id in statements that otherwise have only a batch.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bench import filling, large, ledger, rows
from bench.costs import Cost, cost_of, run, without_autovacuum
from bench.database import own_database
from bench.results import Options, Result, ResultRow, ratio
from bench.tables import purge_day

if TYPE_CHECKING:
    from uuid import UUID

    from channels_app.models import Channel

_DAYS: Final = 31  # one more than deliveries are kept
_PLANNED: Final = 20_000
_TABLE: Final = "notifications_app_delivery"
_NEWS: Final = "delivery.notification_id = news.notification_id"
# The beginnings of conditions on deliveries, in statements with the notifications as a parameter.
_CONDITIONS: Final = (
    "delivery.batch_id = ANY(",
    "notification_id = reported.notification_id\n",
    "delivery.notification_id = news.notification_id",
)
_ONE, _PARTS, _NAMED = "one table", "partitions", "partitions, named"


def measure(options: Options) -> Result:
    daily = options.deliveries // _DAYS
    result = Result(remarks=[f"{options.deliveries:,} deliveries of {_DAYS} days."])
    found: dict[str, dict[str, list[float]]] = {}
    with own_database():
        without_autovacuum()
        channel = _filled(daily)
        for _ in range(options.rounds):
            with result.load.round():
                for variant in (_ONE, _PARTS, _NAMED):
                    with _working_on(variant):
                        for name, cost in _work(channel).items():
                            own = found.setdefault(name, {}).setdefault(variant, [])
                            own.append(1e6 * cost.cpu)
        with result.load.round():
            days = _ended_days(daily)
    for name, variants in found.items():
        for variant, values in variants.items():
            beside = None if variant == _ONE else ratio(values, variants[_ONE])
            result.rows.append(ResultRow(f"{name}: {variant}", "CPU-µs", values, beside))
    result.rows += days
    return result


def _filled(daily: int) -> "Channel":
    with filling.in_bulk("subscriptions_app_subscription"):
        crowd = filling.channel_with(20 * daily, platforms=[rows.PLATFORM])
        channel = filling.channel_with(_PLANNED, platforms=[rows.PLATFORM])
    ledger.prepare(crowd)
    ledger.fill_days(crowd, [day + 0.1 for day in reversed(range(_DAYS))], daily)
    run(_COPY)
    run("VACUUM ANALYZE")
    return channel


@contextmanager
def _working_on(variant: str) -> Iterator[None]:
    from django.db import connection

    if variant == _ONE:
        yield
        return
    run(f"ALTER TABLE {_TABLE} RENAME TO bench_one; ALTER TABLE bench_parts RENAME TO {_TABLE}")
    try:
        with connection.execute_wrapper(_named if variant == _NAMED else _plain):
            yield
    finally:
        run(f"ALTER TABLE {_TABLE} RENAME TO bench_parts; ALTER TABLE bench_one RENAME TO {_TABLE}")


def _plain(execute: Any, *arguments: Any) -> Any:
    return execute(*arguments)


def _named(execute: Any, statement: str, parameters: Any, *rest: Any) -> Any:
    """Adds the notifications as values, so that the planner knows the partitions."""
    if "%(notifications)s" in statement:
        for each in _CONDITIONS:
            table = "delivery." if each.startswith("delivery.") else ""
            named = f"{table}notification_id = ANY(%(named)s::uuid[]) AND {each}"
            statement = statement.replace(f"WHERE {each}", f"WHERE {named}")
        parameters = {**parameters, "named": _each_once(parameters["notifications"])}
    return execute(statement, parameters, *rest)


def _each_once(ids: Any) -> list[str]:
    """Ids of notifications, from the list or the text of an array that names one for each row."""
    return sorted(set(ids.strip("{}").split(",") if isinstance(ids, str) else map(str, ids)))


def _work(channel: "Channel") -> dict[str, Cost]:
    """The costs of a whole send, and of other functions that read or write deliveries."""
    from notifications_app import selectors
    from notifications_app.models import Notification
    from subscriptions_app.models import Subscription

    costs = {"plan, a recipient": cost_of(partial(rows.plan, channel), _PLANNED)}
    leases = [large.claim() for _ in range(_PLANNED // 1000)]
    costs["outcome, a recipient"] = cost_of(partial(large.deliver_all, leases), _PLANNED)
    newest = Notification.objects.filter(channel=channel).order_by("-id")[0].pk
    told = selectors.log_after(newest, after=large.NIL, limit=100)
    device = Subscription.objects.get(pk=told[0].subscription_id)
    steps: dict[str, Callable[[], object]] = {
        "an event": partial(_click_all, newest, [entry.subscription_id for entry in told]),
        "1,000 lines of the log": partial(
            large.repeat, partial(selectors.log_after, newest, after=large.NIL, limit=1000), 100
        ),
        "outcomes of a device": partial(
            large.repeat, partial(selectors.subscriber_deliveries, device, notifications=20), 100
        ),
    }
    return costs | {name: cost_of(step, 100) for name, step in steps.items()}


def _click_all(notification_id: "UUID", subscription_ids: "list[UUID]") -> None:
    for subscription_id in subscription_ids:
        large.click(notification_id, subscription_id)


def _ended_days(daily: int) -> list[ResultRow]:
    """Ends the oldest day: detaches and drops its partition, or deletes its rows and vacuums. Only
    the second also deletes batches."""
    dropped = cost_of(
        partial(
            run, "ALTER TABLE bench_parts DETACH PARTITION bench_day_30; DROP TABLE bench_day_30"
        )
    )
    deleted = cost_of(purge_day)
    vacuumed = cost_of(partial(run, f"VACUUM {_TABLE}"))
    return [
        ResultRow(
            f"the end of a day, {name}",
            "CPU-ms",
            [1000 * cost.cpu],
            note=f"{cost.wal / 1e6:,.1f} MB of WAL; {1e6 * cost.cpu / daily:.2f} µs for a delivery",
        )
        for name, cost in {
            "detached and dropped": dropped,
            "deleted": deleted,
            "vacuumed after it": vacuumed,
        }.items()
    ]


# Day n begins n days before tomorrow, in UTC, because ids begin with 48 bits of Unix milliseconds.
_COPY = f"""
CREATE TABLE bench_parts (LIKE {_TABLE} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
  PARTITION BY RANGE (notification_id);
ALTER TABLE bench_parts ADD PRIMARY KEY (notification_id, subscription_id);
CREATE INDEX ON bench_parts (batch_id);
CREATE TABLE bench_day_default PARTITION OF bench_parts DEFAULT WITH (fillfactor = 45);
DO $$ BEGIN
  FOR day IN 0..{_DAYS - 1} LOOP
    EXECUTE format(
      'CREATE TABLE bench_day_%s PARTITION OF bench_parts FOR VALUES FROM (%L) TO (%L)
       WITH (fillfactor = 45)', day,
      rpad(lpad(to_hex((extract(epoch FROM now() - make_interval(days => day, hours => 12))
        * 1000)::bigint), 12, '0'), 32, '0')::uuid,
      rpad(lpad(to_hex((extract(epoch FROM now() - make_interval(days => day, hours => -12))
        * 1000)::bigint), 12, '0'), 32, '0')::uuid);
  END LOOP;
END $$;
INSERT INTO bench_parts SELECT * FROM {_TABLE} ORDER BY notification_id, subscription_id
"""  # noqa: S608 - a constant
