"""The figures by name, in the order of bench/RESULTS.md."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench import (
    audience,
    latency,
    lateness,
    planning,
    reads,
    requests,
    rows,
    sending,
    starting,
    transports,
)
from bench.results import Options, Result


@dataclass(frozen=True)
class Figure:
    title: str
    measure: Callable[[Options], Result]


FIGURES: Final[dict[str, Figure]] = {
    "web": Figure("Web push, beside libraries that only send", sending.web),
    "ios": Figure("iOS, beside libraries that only send", sending.ios),
    "android": Figure("Android, beside libraries that only send", sending.android),
    "transports": Figure("The transports alone", transports.measure),
    "requests": Figure("Requests, beside a view with one INSERT", requests.measure),
    "planning": Figure("Planning a notification to everybody", planning.measure),
    "rows": Figure("A recipient in PostgreSQL", rows.measure),
    "reads": Figure("Small and large channels", reads.measure),
    "audience": Figure("Memory of a worker by audience", audience.measure),
    "latency": Figure("Send to first receipt, idle", latency.measure),
    "lateness": Figure("Lateness of scheduled notifications", lateness.measure),
    "starting": Figure("An idle worker", starting.measure),
}
