"""The figures by name, in the order of bench/RESULTS.md."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench import (
    audience,
    caps,
    direct,
    exporting,
    hot,
    importing,
    languages,
    latency,
    lateness,
    limited,
    partitions,
    people,
    personal,
    planning,
    rates,
    reads,
    requests,
    rows,
    sending,
    sparse,
    starting,
    stopping,
    tables,
    transports,
    variants,
    waiting,
    webhooks,
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
    "languages": Figure("Texts in six languages", languages.measure),
    "personal": Figure("Three placeholders", personal.ios),
    "personal-android": Figure("Three placeholders on Android", personal.android),
    "personal-web": Figure("Three placeholders in browsers", personal.web),
    "test": Figure("A test of two variants", variants.test),
    "requests": Figure("Requests, beside a view with one INSERT", requests.measure),
    "direct": Figure("The whole bill of a direct send", direct.measure),
    "people": Figure("Devices that belong to people", people.measure),
    "webhooks": Figure("Facts for webhooks", webhooks.measure),
    "import": Figure("Subscribers from a file", importing.measure),
    "export": Figure("Subscribers into a file, beside COPY", exporting.measure),
    "planning": Figure("Planning a notification to everybody", planning.measure),
    "caps": Figure("Planning with caps", caps.measure),
    "split": Figure("Planning with variants", variants.split),
    "rows": Figure("A recipient in PostgreSQL", rows.measure),
    "hot": Figure("Flushes of one notification, beside as many notifications", hot.measure),
    "sparse": Figure(
        "A segment of a few in a large channel, found in three ways",
        sparse.measure,
    ),
    "waiting": Figure("Claims beside parts that wait", waiting.measure),
    "reads": Figure("Small and large channels", reads.measure),
    "tables": Figure("A large ledger", tables.measure),
    "partitions": Figure("Deliveries of a day in a table of their own", partitions.measure),
    "audience": Figure("Memory of a worker by audience", audience.measure),
    "latency": Figure("Send to first receipt, idle", latency.measure),
    "lateness": Figure("Lateness of scheduled notifications", lateness.measure),
    "limited": Figure("A push service that limits a channel", limited.measure),
    "rates": Figure("A send's own rate", rates.measure),
    "stopping": Figure("A send that is stopped in the console", stopping.measure),
    "starting": Figure("An idle worker", starting.measure),
}
