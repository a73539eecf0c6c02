"""The SQL of the pipeline by name, each statement whole. `manage.py statements` prints it.

The parameters of a statement are examples, with which PostgreSQL can explain it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from notifications_app.models import Driver
from notifications_app.pipeline import (
    batches,
    counting,
    expiry,
    outcomes,
    plan_queue,
    planning,
    ranges,
    reading,
    send_rates,
    shares,
    timed_starts,
    windows,
)
from notifications_app.pipeline.contacts import Limits
from notifications_app.pipeline.lease import PlanLease
from notifications_app.states import STATES
from pushsvc.common.platforms import Platform
from subscriptions_app.audiences.windows import LAST_ID
from subscriptions_app.segments.compiler import compiled_for_index

_ID: Final = UUID(int=1)
_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LEASE: Final = PlanLease(
    plan_id=1,
    number=1,
    notification_id=_ID,
    channel_id=_ID,
    platform=Platform.WEB,
    rule_json=None,
    driver=Driver.SCAN,
    zones=None,
    has_targets=False,
    release_at=_MOMENT,
    started_at=_MOMENT,
    category="",
    is_shared=False,
)
_RULE: Final = '{"attribute": "plan", "operator": "eq", "value": "pro"}'
_CAPS: Final = '[{"limit": 3, "hours": 24}, {"limit": 9, "hours": 168}]'
_ONCE: Final = f'{{"schedule_id": "{_ID}", "days": 7}}'
_LIMITED: Final = replace(_LEASE, caps_json=_CAPS)  # reads the keys of people
_TAGGED: Final = '{"tag": "news"}'
_NAMING: Final = json.dumps({"notification": str(_ID), "outcome": "clicked"})
# By name; a parameter that is missing here is a list, which may be empty.
_EXAMPLES: Final[dict[str, Any]] = STATES | {
    "after": _ID,
    "ahead": send_rates.AHEAD,
    "channel": _ID,
    "cursor": _ID,
    "holder": _ID,
    "lease": timedelta(seconds=120),
    "id": _ID,
    "latest": _MOMENT,
    "limit": 100,
    "most": 50,
    "most_losses": 10,
    "named": _ID,
    "nobody": "{}",
    "notification": _ID,
    "number": 100,
    "nobody_of_old": _ID,
    "only": None,
    "parts": "[]",
    "parked_for": timedelta(hours=1),
    "plan": 1,
    "platform": "web",
    "push_service": "fcm",
    "rest": timedelta(seconds=5),
    "room": 900,
    "seed": 1,
    "scan_driver": Driver.SCAN,
    "most_channels": 10,
    "ids_driver": Driver.IDS,
    "in_own_share": True,
    "silent": timedelta(seconds=12),
    "since": _MOMENT,
    "size": 1_000,
    "tag": "news",
    "timing": "{}",
    "ttl_zero": 3_600,
    "until": LAST_ID,
    "window": 5_000,
    "zone_at": 1,
}
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")


class Statement(NamedTuple):
    text: str
    parameters: Mapping[str, Any]


def statements() -> dict[str, Statement]:
    """In the order in which a send meets them."""
    return {
        "start_due": _written(plan_queue.START),
        "next_timed": _written(timed_starts.NEXT_TIMED),
        "start_timed_at_once": _written(timed_starts.START_AT_ONCE),
        "start_timed_in_parts": _written(timed_starts.START_IN_PARTS),
        "start_tested": _written(timed_starts.START_TESTED),
        "claim_new_plans": _written(plan_queue.CLAIM_NEW),
        "claim_begun_plan": _written(plan_queue.CLAIM_BEGUN),
        **_windows(),
        "lock_plans": _written(plan_queue.LOCK_PLANS),
        "count_windows": _written(planning.COUNT_WINDOWS),
        "divide_plan": _written(ranges.DIVIDE),
        "next_plans": _written(batches.NEXT_PLANS),
        "claim_batch": _written(batches.CLAIM),
        "lock_send_rate": _written(send_rates.LOCK_DUE),
        "find_rates_not_due": _written(send_rates.NOT_DUE),
        "charge_send_rate": _written(send_rates.CHARGE),
        "claim_companions": _written(batches.CLAIM_COMPANIONS),
        "read_plans": _written(reading.READ_PLANS),
        "read_due_deliveries": _written(reading.READ_DUE),
        "lock_batches": _written(outcomes.LOCK),
        "update_deliveries": _written(outcomes.UPDATE_DELIVERIES),
        "count_batches": _written(counting.COUNT_BATCHES),
        "count_notifications": _written(counting.COUNT_NOTIFICATIONS),
        "count_minutes": _written(counting.COUNT_MINUTES),
        "count_hour": _written(counting.COUNT_HOUR),
        "finish_notifications": _written(counting.FINISH),
        "lock_unmerged": _written(shares.LOCK_UNMERGED),
        "merge_minutes": _written(shares.MERGE_MINUTES),
        "merge_hours": _written(shares.MERGE_HOURS),
        "due_counts": _written(batches.DUE_COUNTS),
        "shorten_dead_leases": _written(batches.SHORTEN),
        "free_lost_leases": _written(batches.FREE_LOST),
        "claim_parked_batch": _written(batches.CLAIM_PARKED),
        "unpark_batches": _written(batches.UNPARK),
        "find_overdue_batches": _queried(batches.overdue_batches()),
        "close_delivered_plans": _written(expiry.CLOSE),
        "find_settling_plan": _queried(expiry.settling_plans()),
    }


def _windows() -> dict[str, Statement]:
    """The variants of the statement that writes recipients."""
    ruled, tagged = replace(_LEASE, rule_json=_RULE), replace(_LEASE, rule_json=_TAGGED)
    naming = replace(_LEASE, rule_json=_NAMING)
    asking = replace(_LEASE, category="news")
    zoned = replace(_LEASE, zones=["Europe/Berlin"], is_shared=True)
    direct = replace(_LEASE, driver=Driver.IDS, has_targets=True)
    direct_part = replace(zoned, has_targets=True)
    indexed = compiled_for_index(ruled.rule or {})
    sources = {
        "write_window": (_LEASE, windows.scan(_LEASE)),
        "write_window_of_rule": (ruled, windows.scan(ruled)),
        "write_window_of_category": (asking, windows.scan(asking)),
        "write_window_of_tag": (tagged, windows.tagged(tagged)),
        "write_window_of_ledger": (naming, windows.of_ledger(naming, "clicked")),
        "write_candidates": (ruled, windows.candidates(ruled, indexed)),
        "write_window_of_zones": (zoned, windows.zoned(zoned)),
        "write_window_of_movers": (zoned, windows.moved(zoned)),
        "write_whole": (_LEASE, windows.whole(_LEASE, has_category=False)),
        "write_whole_of_category": (asking, windows.whole(asking, has_category=True)),
        "write_targets": (direct, windows.whole(direct, has_category=False)),
        "write_targets_of_category": (direct, windows.whole(direct, has_category=True)),
        "write_targets_of_part": (direct_part, windows.whole(direct_part, has_category=False)),
    }
    written = {
        name: _written(
            windows.statement(source, is_shared=lease.is_shared),
            windows.parameters_of(lease) | dict(indexed.parameters),
        )
        for name, (lease, source) in sources.items()
    }
    split = windows.statement(windows.scan(_LEASE), is_shared=False, weights=(1, 1))
    written["write_window_of_variants"] = _written(split, windows.parameters_of(_LEASE))
    shared = windows.statement(windows.scan(_LEASE), is_shared=True)
    part = {"write_window_of_part": _written(shared, windows.parameters_of(_LEASE))}
    return written | part | _limited_windows()


def _limited_windows() -> dict[str, Statement]:
    """The same with caps, and of a schedule that contacts nobody twice in some days."""
    stored = {"caps": (_CAPS, None), "once": (None, _ONCE), "caps_and_once": (_CAPS, _ONCE)}
    found = {}
    for name, (caps, once) in stored.items():
        limits = Limits.of(_ID, _ID, _MOMENT, caps_json=caps, once_json=once)
        text = windows.statement(windows.scan(_LIMITED), is_shared=False, limits=limits)
        own = windows.parameters_of(_LIMITED) | (limits.parameters if limits else {})
        found[f"write_window_of_{name}"] = _written(text, own)
    return found


def _written(text: str, parameters: Mapping[str, Any] | None = None) -> Statement:
    own = _EXAMPLES | dict(parameters or {})
    return Statement(text, {name: own.get(name, []) for name in _PARAMETER.findall(text)})


def _queried(queryset: Any) -> Statement:
    """The statement of a queryset, with its values in place of names."""
    text, values = queryset.query.sql_with_params()
    names = [f"p{place}" for place, _ in enumerate(values, 1)]
    named = text % tuple(f"%({name})s" for name in names)
    return Statement(named, dict(zip(names, values, strict=True)))
