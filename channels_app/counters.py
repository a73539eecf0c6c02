"""The only writer of channels' totals, and of how each hour changed them.

One statement writes both, so they always agree. It is raw SQL, because it inserts into two tables
at once (WITH … INSERT) and adds to stored values on conflict, which the ORM cannot do.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final
from uuid import UUID

from channels_app.models import (
    KEPT_TOTALS,
    PROMPT_EVENTS,
    ChannelCounter,
    ChannelHour,
    DeletedTotals,
    PromptHour,
    PromptKind,
)
from channels_app.selectors import ChannelTotals
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql

_SHARDS: Final = 8
_MORE_SHARDS: Final = 56
_COUNTERS: Final = frozenset(ChannelTotals.__dataclass_fields__)
_HOUR_COLUMNS: Final = (
    *(f"{platform}_{change}" for platform in Platform for change in ("gained", "lost")),
    "notifications_sent",
)


def counter_add(channel_id: UUID, **deltas: int) -> None:
    """Adds to the channel's totals and to its row of this hour, in the caller's transaction.
    `tests_sent`: how many of `notifications_sent` were tests, which hours do not count.

    The shard depends on the database connection, so a transaction that counts twice for a channel
    locks one row. A transaction that counts for several channels must do so in the order of their
    ids.
    """
    _add(channel_id, deltas, is_busy=False)


def busy_counter_add(channel_id: UUID, **deltas: int) -> None:
    """As `counter_add`, for one of many connections that count for the channel at once. They are
    divided among more shards. The transaction must not call `counter_add` for the channel later."""
    _add(channel_id, deltas, is_busy=True)


def counters_add(changes: Mapping[UUID, Mapping[str, int]]) -> None:
    """As `counter_add` for several channels, in the order of their ids. Uses one statement if only
    `recipients` change."""
    changed = sorted((id_, dict(each)) for id_, each in changes.items() if any(each.values()))
    if len(changed) > 1 and all(_changes(each)[0].keys() == {"recipients"} for _, each in changed):
        ids, amounts = [id_ for id_, _ in changed], [each["recipients"] for _, each in changed]
        sql.execute(_RECIPIENTS_OF_SEVERAL, {"channels": ids, "recipients": amounts})
        return
    for channel_id, deltas in changed:
        counter_add(channel_id, **deltas)


def counter_parts(
    source: str, deltas: dict[str, int], columns: tuple[str, ...] = ()
) -> tuple[str, dict[str, int]]:
    """CTEs that do what `counter_add` does, and their parameters, for the row of the CTE `source`
    (channel_id), which must have at most one row. Counters named in `columns` grow by this column
    of `source`."""
    added, hour = _changes(deltas)
    return _parts(source, tuple(added), tuple(hour), columns), _parameters(added, hour)


def clicks_part(source: str) -> str:
    """A CTE that adds the rows of the CTE `source` (channel_id, clicked) to channels' totals, in
    the order of channel ids. So counting needs no round trip while locks are held."""
    rows = f"""
        SELECT channel_id, pg_backend_pid() %% {_SHARDS}, sum(clicked)
        FROM {source} GROUP BY channel_id ORDER BY channel_id"""  # noqa: S608 - a name of our own
    return _addition(ChannelCounter._meta.db_table, ("channel_id", "shard"), ("clicked",), rows)


def counters_delete(channel_id: UUID) -> int:
    """Deletes the channel's totals, and adds its KEPT_TOTALS to `DeletedTotals`. Returns the number
    of deleted shares. Safe to repeat."""
    return int(sql.rows(_DELETE, {"channel": channel_id})[0][0])


def channel_hours_merge(limit: int) -> int:
    """Merges at most `limit` shares of past hours into share 0. Returns how many it merged.

    Readers see the same sums at any time. Safe to repeat, also concurrently.
    """
    return int(sql.rows(_MERGE_HOURS, {"limit": limit})[0][0])


def prompt_count(channel_id: UUID, kind: PromptKind, event: str) -> None:
    """Counts one of PROMPT_EVENTS in this hour."""
    if event not in PROMPT_EVENTS:
        raise ValueError(f"no such event: {event}")
    sql.execute(_prompt_statement(event), {"channel_id": channel_id, "kind": kind})


def prompt_hours_merge(limit: int) -> int:
    """As `channel_hours_merge`."""
    return int(sql.rows(_MERGE_PROMPTS, {"limit": limit})[0][0])


@cache
def _prompt_statement(event: str) -> str:
    rows = f"""
        SELECT %(channel_id)s::uuid, date_trunc('hour', statement_timestamp(), 'UTC'), %(kind)s,
          pg_backend_pid() %% {_SHARDS}, 1"""
    key = ("channel_id", "hour", "kind", "shard")
    return _addition(PromptHour._meta.db_table, key, (event,), rows)


def _add(channel_id: UUID, deltas: dict[str, int], *, is_busy: bool) -> None:
    added, hour = _changes(deltas)
    if added:
        statement = _statement(tuple(added), tuple(hour), is_busy=is_busy)
        parameters = {"channel_id": channel_id, **_parameters(added, hour)}
        sql.execute(statement, parameters, is_prepared=True)


def _changes(deltas: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The columns of ChannelCounter and of ChannelHour that change, with the amounts."""
    added = {name: delta for name, delta in deltas.items() if delta}
    tests_sent = added.pop("tests_sent", 0)
    if unknown := added.keys() - _COUNTERS:
        raise ValueError(f"no such counters: {sorted(unknown)}")
    return added, _hour_of(added, tests_sent)


def _parameters(added: dict[str, int], hour: dict[str, int]) -> dict[str, int]:
    return {**added, **{f"hour_{name}": delta for name, delta in hour.items()}}


def _hour_of(added: dict[str, int], tests_sent: int) -> dict[str, int]:
    """The columns of ChannelHour that change, with the amounts."""
    hour = {}
    for platform in Platform:
        change = added.get(f"{platform}_subscribers", 0)
        if change:
            hour[f"{platform}_{'gained' if change > 0 else 'lost'}"] = abs(change)
    if sent := added.get("notifications_sent", 0) - tests_sent:
        hour["notifications_sent"] = sent
    return hour


@cache
def _statement(names: tuple[str, ...], hour_names: tuple[str, ...], *, is_busy: bool) -> str:
    return f"""
        WITH given AS (SELECT %(channel_id)s::uuid AS channel_id),
          {_parts("given", names, hour_names, is_busy=is_busy)}
        SELECT"""


@cache
def _parts(
    source: str,
    names: tuple[str, ...],
    hour_names: tuple[str, ...],
    columns: tuple[str, ...] = (),
    *,
    is_busy: bool = False,
) -> str:
    shard = f"pg_backend_pid() %% {_SHARDS}"
    if is_busy:
        shard = f"{_SHARDS} + pg_backend_pid() %% {_MORE_SHARDS}"
    amounts = ", ".join([*(f"%({name})s" for name in names), *columns])
    rows = f"""
        SELECT channel_id, {shard}, {amounts}
        FROM {source}"""  # noqa: S608 - names of our own
    every = (*names, *columns)
    counters = _addition(ChannelCounter._meta.db_table, ("channel_id", "shard"), every, rows)
    counted = f"counted AS ({counters} RETURNING channel_id, shard)"
    if not hour_names:
        return counted
    # Reads from the first part, so that the counter's row is locked before the hour's.
    rows = f"""
        SELECT channel_id, shard, date_trunc('hour', statement_timestamp(), 'UTC'),
          {", ".join(f"%(hour_{name})s" for name in hour_names)}
        FROM counted"""  # noqa: S608 - names of our own
    key = ("channel_id", "shard", "hour")
    hour = _addition(ChannelHour._meta.db_table, key, hour_names, rows)
    return f"{counted}, counted_hour AS ({hour})"


def _addition(table: str, key: tuple[str, ...], names: tuple[str, ...], rows: str) -> str:
    """SQL that inserts the rows, or adds to a row with the same key."""
    sums = ", ".join(f"{name} = stored.{name} + EXCLUDED.{name}" for name in names)
    return f"""
        INSERT INTO {table} AS stored ({", ".join((*key, *names))})
        {rows}
        ON CONFLICT ({", ".join(key)}) DO UPDATE SET {sums}
    """


_RECIPIENTS_OF_SEVERAL: Final = f"""
WITH given AS (
  SELECT * FROM unnest(%(channels)s::uuid[], %(recipients)s::bigint[])
    AS given (channel_id, recipients)
), {_parts("given", (), (), ("recipients",))}
SELECT"""  # noqa: S608 - names of our own


_DELETE: Final = f"""
WITH deleted AS (
  DELETE FROM {ChannelCounter._meta.db_table} WHERE channel_id = %(channel)s RETURNING *
), kept AS ({
    _addition(
        DeletedTotals._meta.db_table,
        ("id",),
        KEPT_TOTALS,
        f"SELECT 1, {', '.join(f'sum({name})' for name in KEPT_TOTALS)} FROM deleted"
        " HAVING count(*) > 0",
    )
})
SELECT count(*) FROM deleted
"""  # noqa: S608 - names of our own


def merging(table: str, key: str, names: tuple[str, ...]) -> str:
    """SQL that merges shares. `key`: the columns of the primary key except `shard`. Only hours that
    ended at least an hour ago, because a transaction may still write to a later one. Raw SQL,
    because the ORM has neither DELETE … RETURNING nor an upsert that adds."""
    return f"""
WITH old AS MATERIALIZED (
  SELECT {key}, shard FROM {table}
  WHERE shard <> 0 AND hour < statement_timestamp() - interval '2 hours'
  ORDER BY hour, {key}, shard LIMIT %(limit)s
  FOR UPDATE SKIP LOCKED
), ended AS (
  DELETE FROM {table} WHERE ({key}, shard) IN (SELECT {key}, shard FROM old)
  RETURNING *
), merged AS (
  INSERT INTO {table} AS stored
    ({key}, shard, {", ".join(names)})
  SELECT {key}, 0, {", ".join(f"sum({name})" for name in names)}
  FROM ended GROUP BY {key} ORDER BY {key}
  ON CONFLICT ({key}, shard) DO UPDATE
  SET {", ".join(f"{name} = stored.{name} + EXCLUDED.{name}" for name in names)}
)
SELECT count(*) FROM ended
"""  # noqa: S608 - names of our own


_MERGE_HOURS: Final = merging(ChannelHour._meta.db_table, "channel_id, hour", _HOUR_COLUMNS)
_MERGE_PROMPTS: Final = merging(PromptHour._meta.db_table, "channel_id, hour, kind", PROMPT_EVENTS)
