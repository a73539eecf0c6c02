"""The metrics for /metrics: their names, and their values in this process.

Counting adds to numbers in this process's memory, which `store.metric_reports` reports. So it never
waits and never fails. The values of labels come from closed sets: the counting code replaces values
that a client can choose, such as a host or a path, with a known name or OTHER.
"""

import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Final

OTHER: Final = "other"

# Redis adds whole numbers only, so fractions are stored in millionths.
MILLIONTHS: Final = 1_000_000
SUM: Final = "sum"
SEPARATOR: Final = "\t"


_lock = Lock()
_amounts: dict[str, int] = {}


def take() -> Mapping[str, int]:
    """Returns what this process counted since the last call, by field: a metric's name, the values
    of its labels, and a histogram's bucket or SUM."""
    global _amounts
    with _lock:
        taken, _amounts = _amounts, {}
    return taken


def _add(begin: str, amounts: Mapping[str, int]) -> None:
    """Adds amounts. `begin`: the common beginning of the names of the fields."""
    with _lock:
        for end, amount in amounts.items():
            field = begin + end
            _amounts[field] = _amounts.get(field, 0) + amount


def _begin_anew() -> None:
    """Forgets the counts in a forked process, because the parent reports its own. Another thread of
    the parent may have held the lock."""
    global _lock, _amounts
    _lock, _amounts = Lock(), {}


os.register_at_fork(after_in_child=_begin_anew)


@dataclass(frozen=True)
class Count:
    """A number that only grows. In Prometheus it is `name` with `_total` appended."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()

    @cached_property
    def scale(self) -> int:
        """The divisor of the stored number."""
        return MILLIONTHS if self.name.endswith("_seconds") else 1

    def add(self, amount: float, *values: str) -> None:
        whole = round(amount * self.scale)
        _add(SEPARATOR.join((self.name, *values, "")), {"": whole})


@dataclass(frozen=True)
class Histogram:
    """How often a number was at most as large as each of the `bounds`, and the sum of all."""

    name: str
    meaning: str
    bounds: tuple[float, ...]
    labels: tuple[str, ...] = ()

    def observe(self, number: float, *values: str) -> None:
        self.observe_all((number,), *values)

    def observe_all(self, numbers: Sequence[float], *values: str) -> None:
        """Adds numbers. A negative number counts as 0, because clocks of machines may differ."""
        amounts: dict[str, int] = {}
        for number in numbers:
            part = self.parts[bisect_left(self.bounds, number)]
            amounts[part] = amounts.get(part, 0) + 1
        if amounts:
            amounts[SUM] = round(MILLIONTHS * sum(max(0, number) for number in numbers))
            _add(SEPARATOR.join((self.name, *values, "")), amounts)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The names of the buckets: each bound, and the rest."""
        return (*map(str, self.bounds), "+Inf")


_SHORT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)

# --- Requests -------------------------------------------------------------------------------------

REQUEST_SECONDS: Final = Histogram(
    "pushsvc_request_duration_seconds",
    "Time from a whole request to the beginning of its response.",
    (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
    ("route",),
)
REQUESTS: Final = Count(
    "pushsvc_requests", "Requests that Django responded to.", ("route", "method", "status")
)
REQUESTS_REFUSED: Final = Count(
    "pushsvc_requests_refused", "Requests that were refused before they got a thread.", ("code",)
)
WEB_BYTES: Final = Count(
    "pushsvc_web_bytes", "Bytes of the bodies of requests and responses.", ("direction",)
)
THREAD_SECONDS: Final = Count(
    "pushsvc_web_thread_seconds", "Time that requests held threads of web processes.", ("kind",)
)

# --- Sending --------------------------------------------------------------------------------------

ACCEPTED: Final = Count("pushsvc_notifications_accepted", "Notifications that were accepted.")
FIRST_HAND_OVER: Final = Histogram(
    "pushsvc_notification_first_hand_over_seconds",
    "Time from a notification's time to its first hand-over to a push service.",
    _LONG,
)
LAST_HAND_OVER: Final = Histogram(
    "pushsvc_notification_last_hand_over_seconds",
    "Time from a notification's time until nobody was left to hand it over to.",
    _LONG,
)
HAND_OVER: Final = Histogram(
    "pushsvc_hand_over_seconds",
    "Time from a notification's time to its hand-over, for each recipient that was delivered.",
    _LONG,
    ("platform",),
)
OUTCOMES: Final = Count(
    "pushsvc_outcomes",
    "Outcomes of calls, and recipients that ended without a call, as they were written.",
    ("platform", "push_service", "outcome"),
)
CALL_SECONDS: Final = Histogram(
    "pushsvc_call_duration_seconds",
    "Time of a call to a push service.",
    _SHORT,
    ("platform", "push_service"),
)
PUSH_BYTES: Final = Count(
    "pushsvc_push_bytes", "Bytes of the bodies sent to push services.", ("platform", "push_service")
)
FLUSH_SIZE: Final = Histogram(
    "pushsvc_flush_outcomes",
    "Recipients that a flush wrote.",
    (1.0, 3.0, 10.0, 30.0, 100.0, 200.0, 300.0),
    ("platform",),
)
FLUSH_SECONDS: Final = Histogram(
    "pushsvc_flush_duration_seconds",
    "Time that PostgreSQL took for a flush.",
    _SHORT,
    ("platform",),
)
LEASE_LOSSES: Final = Count(
    "pushsvc_lease_losses",
    "Leases that ended without their worker (silent), and passes that broke (broken).",
    ("platform", "kind"),
)
WORKER_SECONDS: Final = Count(
    "pushsvc_worker_busy_seconds", "Time that worker processes spent on tasks.", ("queue",)
)

WEBHOOK_CALLS: Final = Count(
    "pushsvc_webhook_calls", "Calls of webhooks whose result was written.", ("outcome",)
)
WEBHOOK_SECONDS: Final = Histogram(
    "pushsvc_webhook_call_duration_seconds", "Time of a call of a webhook.", _SHORT, ("outcome",)
)

ALL: Final = (
    REQUEST_SECONDS,
    REQUESTS,
    REQUESTS_REFUSED,
    WEB_BYTES,
    THREAD_SECONDS,
    ACCEPTED,
    FIRST_HAND_OVER,
    LAST_HAND_OVER,
    HAND_OVER,
    OUTCOMES,
    CALL_SECONDS,
    PUSH_BYTES,
    FLUSH_SIZE,
    FLUSH_SECONDS,
    LEASE_LOSSES,
    WORKER_SECONDS,
    WEBHOOK_CALLS,
    WEBHOOK_SECONDS,
)
