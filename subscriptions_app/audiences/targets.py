"""Finds the people and subscriptions that a request names by their ids.

An id of another channel counts as unknown, like an id that does not exist.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.segments.compiler import EVERYBODY, Condition


@dataclass(frozen=True, slots=True)
class TargetIds:
    """Ids without repetitions."""

    external_ids: Sequence[str] = ()
    subscription_ids: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """What the named ids reach. `devices`: how many active subscriptions on each platform, each
    counted once. `services`: the push services of each platform that has any. `unknown`: unknown
    ids in the order of the request."""

    devices: dict[Platform, int]
    services: Mapping[Platform, Sequence[str]]
    unknown: TargetIds


def targets_reach(channel_id: UUID, named: TargetIds, consent: Condition = EVERYBODY) -> Reach:
    """Counts the devices that the ids reach; only devices that match `consent`."""
    parameters = _ids(channel_id, named)
    statement = _DEVICES.format(consent=consent.text)
    counts: Counter[Platform] = Counter()
    services: defaultdict[Platform, list[str]] = defaultdict(list)
    for platform, service, count in sql.rows(statement, parameters | dict(consent.parameters)):
        counts[platform] += count
        services[platform].append(service)
    unknown = sql.rows(_UNKNOWN, parameters)
    return Reach(
        devices={platform: counts[platform] for platform in Platform},
        services=services,
        unknown=TargetIds(
            [external_id for external_id, _ in unknown if external_id is not None],
            [subscription_id for _, subscription_id in unknown if subscription_id is not None],
        ),
    )


def targets_sample(
    channel_id: UUID, named: TargetIds, platforms: Iterable[Platform], *, limit: int
) -> list[UUID]:
    """Ids of some of the named active subscriptions, at most `limit` of a platform."""
    parameters = _ids(channel_id, named) | {"platforms": list(platforms), "limit": limit}
    return [row[0] for row in sql.rows(_SAMPLE, parameters)]


def targets_zones(channel_id: UUID, named: TargetIds) -> list[tuple[str, str]]:
    """The platforms and time zones of the named active subscriptions."""
    return [(row[0], row[1]) for row in sql.rows(_ZONES, _ids(channel_id, named))]


def _ids(channel_id: UUID, named: TargetIds) -> dict[str, Any]:
    people, devices = list(named.external_ids), list(named.subscription_ids)
    return {
        "channel": channel_id,
        "external_ids": people + [None] * len(devices),
        "subscription_ids": [None] * len(people) + devices,
    }


def targets_part() -> str:
    """CTEs that find the subscriptions of an earlier CTE `named` (position, channel_id,
    external_id, subscription_id).

    They are `known` (position), the entries that the channel has, and `reached` (position, id,
    platform, push_service, person_id, choices, timezone, timezone_changed_at), their active
    subscriptions. A subscription that is named in two ways is in `reached` twice.
    """
    return _FOUND


# Raw, because it is a part of the statement that writes recipients. LATERAL with OFFSET, so that
# each id is looked up by index. With a plain join PostgreSQL may read the whole channel if it
# expects the wrong number of rows.
_FOUND: Final = """people AS MATERIALIZED (
  SELECT named.position, named.channel_id, person.id FROM named
  CROSS JOIN LATERAL (
    SELECT id FROM subscriptions_app_person
    WHERE channel_id = named.channel_id AND external_id = named.external_id OFFSET 0) AS person
), single AS MATERIALIZED (
  SELECT named.position, subscription.* FROM named
  CROSS JOIN LATERAL (
    SELECT id, platform, push_service, person_id, choices, timezone, timezone_changed_at, expired_at
    FROM subscriptions_app_subscription
    WHERE id = named.subscription_id AND channel_id = named.channel_id OFFSET 0) AS subscription
), known AS (
  SELECT position FROM people UNION ALL SELECT position FROM single
), reached AS MATERIALIZED (
  SELECT people.position, subscription.* FROM people
  CROSS JOIN LATERAL (
    SELECT id, platform, push_service, person_id, choices, timezone, timezone_changed_at
    FROM subscriptions_app_subscription
    WHERE person_id = people.id AND channel_id = people.channel_id AND expired_at IS NULL OFFSET 0
  ) AS subscription
  UNION ALL
  SELECT position, id, platform, push_service, person_id, choices, timezone, timezone_changed_at
  FROM single WHERE expired_at IS NULL
)"""

_GIVEN: Final = f"""WITH named (channel_id, external_id, subscription_id, position)
AS MATERIALIZED (
  SELECT %(channel)s::uuid, given.*
  FROM unnest(%(external_ids)s::text[], %(subscription_ids)s::uuid[]) WITH ORDINALITY AS given
), {_FOUND}"""  # noqa: S608 - text of our own

_DEVICES: Final = f"""{_GIVEN}
SELECT platform, push_service, count(DISTINCT id) FROM reached AS subscription
WHERE {{consent}} GROUP BY platform, push_service ORDER BY push_service
"""  # noqa: S608 - text of our own

_SAMPLE: Final = f"""{_GIVEN}
SELECT id FROM (
  SELECT id, row_number() OVER (PARTITION BY platform ORDER BY id) AS place
  FROM (SELECT DISTINCT id, platform FROM reached WHERE platform = ANY (%(platforms)s)) AS own
) AS sample WHERE place <= %(limit)s
"""  # noqa: S608 - text of our own

_UNKNOWN: Final = f"""{_GIVEN}
SELECT external_id, subscription_id FROM named
WHERE position NOT IN (SELECT position FROM known) ORDER BY position
"""  # noqa: S608 - text of our own

_ZONES: Final = f"{_GIVEN} SELECT DISTINCT platform, timezone FROM reached"  # noqa: S608 - as above
