"""Classes of responses, and the outcome of each.

Each transport has its own table in its `responses` module, which maps a status and a reason to a
row.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import Enum, auto
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
)


class ResponseClass(Enum):
    """Decides the outcome of a response. OUTAGE and THROTTLED are both Deferred; only OUTAGE counts
    against the push service. SUSPECT is a Gone that a wrong configuration could also cause."""

    ACCEPTED = auto()
    THROTTLED = auto()
    OUTAGE = auto()
    REJECTED = auto()
    GONE = auto()
    SUSPECT = auto()
    MISCONFIGURED = auto()


class Row(NamedTuple):
    """The class of a response, and the code of its outcome; the code is empty if accepted."""

    response_class: ResponseClass
    code: str


# By status, and by the push service's own reason for it or ANY.
Table: TypeAlias = Mapping[tuple[int, str], Row]
# By the hundreds of a status that the table does not have (RFC 9110 section 15).
Fallback: TypeAlias = Mapping[int, Row]

ANY: Final = "*"
ACCEPTED: Final = Row(ResponseClass.ACCEPTED, "")
# A refusal without the push service's own error object: a proxy, a gateway or a captive portal
# between us and the push service responded. It means nothing for message, device or credentials.
FOREIGN: Final = Row(ResponseClass.OUTAGE, "foreign_response")
# Of the refusals, those whose meaning does not depend on who responds.
_SAME_FROM_ANYONE: Final = frozenset({408, 413, 429})


def look_up(
    table: Table, fallback: Fallback, status: int, reason: str, *, is_vendors: bool = True
) -> Row:
    """Returns the row of a response. Never fails: a status outside of 100 to 599 counts as 5xx.

    `is_vendors`: whether the response has the push service's own error object, which separates a
    refusal (4xx) by the push service from one by another server.
    """
    if not is_vendors and status // 100 == 4 and status not in _SAME_FROM_ANYONE:
        return FOREIGN
    return (
        table.get((status, reason))
        or table.get((status, ANY))
        or fallback.get(status // 100, fallback[5])
    )


def suspect_codes(table: Table) -> frozenset[str]:
    return frozenset(
        row.code for row in table.values() if row.response_class is ResponseClass.SUSPECT
    )


def accepted_statuses(table: Table) -> frozenset[int]:
    """The statuses that are accepted whatever the reason is."""
    rows: dict[int, set[Row]] = {}
    for (status, _), row in table.items():
        rows.setdefault(status, set()).add(row)
    return frozenset(
        status for status, its in rows.items() if its == {ACCEPTED} and (status, ANY) in table
    )


def outcome_of(
    row: Row, detail: str, *, wait: float | None = None, as_of: datetime | None = None
) -> Outcome:
    """The outcome of a row. `wait`: seconds, for a Deferred. `as_of`: for a Gone."""
    match row.response_class:
        case ResponseClass.ACCEPTED:
            return Accepted()
        case ResponseClass.THROTTLED:
            return Deferred(row.code, detail, wait)
        case ResponseClass.OUTAGE:
            return Deferred(row.code, detail, wait, outage=True)
        case ResponseClass.REJECTED:
            return Rejected(row.code, detail)
        case ResponseClass.GONE:
            return Gone(row.code, detail, as_of)
        case ResponseClass.SUSPECT:
            return Gone(row.code, detail, suspect=True)
        case ResponseClass.MISCONFIGURED:
            return Misconfigured(row.code, detail)
        case _:
            assert_never(row.response_class)


def json_object(body: bytes) -> Mapping[str, Any]:
    """The JSON object in the body, or an empty one."""
    if not body.lstrip().startswith(b"{"):
        return {}
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):  # RecursionError: 4 KiB of brackets
        return {}
    return value if isinstance(value, dict) else {}
