"""Measures the export of subscriptions beside COPY of the same rows, and what pages cost.

COPY reads the columns of the export, with the persons and the tags, as text: no JSON, and no CSV
that is harmless to spreadsheets. The processor time is that of PostgreSQL and of the client.
"""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from bench import filling
from bench.costs import cost_of, run
from bench.database import own_database
from bench.results import Options, Result, ResultRow, ratio

if TYPE_CHECKING:
    from uuid import UUID

    from channels_app.models import Channel
    from pushsvc.common.store.lines import Page

_FEWER: Final = 10  # times fewer rows than `subscribers`
_PAGE: Final = 5_000


def measure(options: Options) -> Result:
    result = Result()
    with own_database():
        count = options.subscribers // _FEWER
        channel = filling.channel_with(count, platforms=("web", "web", "android", "ios"))
        for statement in (_PEOPLE, _LINKS, _TAGS, "VACUUM ANALYZE"):
            run(statement)
        _measure(result, options, channel, count)
    return result


def _measure(result: Result, options: Options, channel: "Channel", count: int) -> None:
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "COPY of the same columns": (lambda: _copy(channel), count),
        "NDJSON": (lambda: _exported(channel), count),
        "NDJSON with addresses": (lambda: _exported(channel, with_address=True), count),
        "CSV with addresses": (lambda: _exported(channel, with_address=True, is_csv=True), count),
        "first page": (lambda: _page(channel, _id(0)), _PAGE),
        "last page": (lambda: _page(channel, _id(count - _PAGE)), _PAGE),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(options.rounds + 1):
        with result.load.round():
            for name, (step, rows) in ways.items():
                began = time.process_time()
                in_database = cost_of(step).cpu
                cost = (in_database + time.process_time() - began) / rows
                if number:  # the first round warms up
                    spent[name].append(cost)
    copied, *exported = list(ways)[:4]
    rates = {name: [1 / cost for cost in costs] for name, costs in spent.items()}
    result.rows.append(ResultRow(copied, "rows / CPU-s", rates[copied]))
    result.rows += [
        ResultRow(name, "rows / CPU-s", rates[name], ratio(rates[name], rates[copied]), "0.5")
        for name in exported
    ]
    first, last = ([cost * 1e6 for cost in spent[name]] for name in ("first page", "last page"))
    result.rows += [
        ResultRow(f"a row of the first {_PAGE:,}", "CPU-µs", first),
        ResultRow(f"a row of the last {_PAGE:,}", "CPU-µs", last, ratio(last, first), "1.2"),
    ]


def _copy(channel: "Channel") -> None:
    from django.db import connection

    with connection.cursor() as cursor, cursor.copy(_COPY.format(channel=channel.pk)) as copied:
        for _ in copied:
            pass


def _exported(channel: "Channel", *, with_address: bool = False, is_csv: bool = False) -> None:
    for page in _pages(channel):
        _write(page, with_address=with_address, is_csv=is_csv)


def _pages(channel: "Channel") -> Iterator["Page"]:
    from pushsvc.common.http.exports import NO_ID
    from subscriptions_app.devices.exporting import subscriptions_page

    after: UUID | None = NO_ID
    while after is not None:
        page = subscriptions_page(channel.pk, after=after, limit=_PAGE)
        yield page
        after = page.next_after


def _page(channel: "Channel", after: "UUID") -> None:
    from subscriptions_app.devices.exporting import subscriptions_page

    page = subscriptions_page(channel.pk, after=after, limit=_PAGE)
    _write(page, with_address=False, is_csv=False)


def _write(page: "Page", *, with_address: bool, is_csv: bool) -> None:
    """Encodes the texts, as a response does."""
    from subscriptions_app.devices.exporting import subscription_texts

    for text in subscription_texts(page, with_address=with_address, is_csv=is_csv):
        text.encode()


def _id(place: int) -> "UUID":
    """The id before the row at this place."""
    from pushsvc.common.http.exports import NO_ID
    from subscriptions_app.models import Subscription

    ids = Subscription.objects.order_by("id").values_list("id", flat=True)
    return ids[place - 1] if place else NO_ID


_PEOPLE = """
INSERT INTO subscriptions_app_person (id, channel_id, external_id, active_devices, choices)
SELECT id, channel_id, 'user-' || row_number() OVER (), 1, '{"offers": false}'
FROM subscriptions_app_subscription
"""
# Gives each device a person of its own, who has the device's id.
_LINKS = """
UPDATE subscriptions_app_subscription SET person_id = id, language = 'de',
  timezone = 'Europe/Berlin', p256dh = repeat('a', 87), auth = repeat('b', 22)
"""
_TAGS = """
INSERT INTO subscriptions_app_tag (channel_id, platform, tag, subscription_id)
SELECT channel_id, platform, tag, id
FROM subscriptions_app_subscription, unnest(ARRAY['news', 'sport']) AS tag
"""
_COPY = """
COPY (
  SELECT own.id, own.platform, own.expired_at, person.external_id, own.language, own.timezone,
    own.attributes, ARRAY(
      SELECT tag FROM subscriptions_app_tag WHERE subscription_id = own.id ORDER BY tag
    ), own.choices, person.choices, own.created_at, own.registered_at, own.expired_code,
    own.address, own.p256dh, own.auth, vapid_key.public_key
  FROM subscriptions_app_subscription AS own
  LEFT JOIN subscriptions_app_person AS person ON person.id = own.person_id
  LEFT JOIN channels_app_vapidkey AS vapid_key ON vapid_key.id = own.vapid_key_id
  WHERE own.channel_id = '{channel}' ORDER BY own.id
) TO STDOUT
"""
