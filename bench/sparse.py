"""Measures the cost of planning a send to few devices in a large channel, as a ratio to a send to a
channel with only these devices. They are found by an attribute, by a tag, and as the recipients of
an earlier notification.

CPU is that of the planner, which is this process, and of its database session.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench import filling
from bench.database import own_database
from bench.meter import spending
from bench.results import Options, Result, ResultRow
from pushsvc.common.platforms import Platform

if TYPE_CHECKING:
    from uuid import UUID

    from channels_app.models import Channel

_PLATFORM: Final = Platform.ANDROID
_FEW: Final = 200
_RULES: Final[dict[str, Any]] = {
    "attribute": {"attribute": "vip", "operator": "eq", "value": "yes"},
    "tag": {"tag": "team-7"},
}
_EVERYBODY: Final = "everybody"
_AIM: Final = "1.2"


def measure(options: Options) -> Result:
    result = Result(remarks=[f"{_FEW} of {options.recipients:,} subscribers, Android."])
    spent: dict[tuple[str, int], list[float]] = {}
    with _audiences(_FEW, options.recipients) as audiences:
        for key, audience in audiences.items():
            _milliseconds(*audience)  # prepares statements and reads pages
            spent[key] = []
        for _ in range(options.rounds):
            with result.load.round():
                for key, audience in audiences.items():
                    spent[key].append(_milliseconds(*audience))
    result.rows = [_row(key, spent) for key in spent]
    return result


def _row(key: tuple[str, int], spent: "dict[tuple[str, int], list[float]]") -> ResultRow:
    """The ratio is to a send to the whole channel with only the few devices."""
    by, size = key
    base = spent[_EVERYBODY, _FEW]
    ratio = None if spent[key] is base else median(spent[key]) / median(base)
    aim = _AIM if size != _FEW else ""
    return ResultRow(f"{by}, channel of {size:,}", "CPU-ms", spent[key], ratio, aim)


@contextmanager
def _audiences(
    *sizes: int,
) -> "Iterator[dict[tuple[str, int], tuple[Channel, UUID | None]]]":
    """The whole smallest channel, and for each rule a segment of _FEW in a channel of each size."""
    with own_database():
        from subscriptions_app.segments.services import segment_create

        channels = {size: filling.channel_with(size, platforms=[_PLATFORM]) for size in sizes}
        audiences: dict[tuple[str, int], tuple[Channel, UUID | None]] = {
            (_EVERYBODY, _FEW): (channels[_FEW], None)
        }
        for size, channel in channels.items():
            rules = _RULES | {"outcome": {"notification": _mark(channel), "outcome": "delivered"}}
            for by, rule in rules.items():
                segment = segment_create(channel=channel, name=by, rule=rule)
                audiences[by, size] = channel, segment.pk
        yield audiences


def _mark(channel: "Channel") -> str:
    """Returns the id of the earlier notification, whose deliveries stay when it is deleted."""
    from django.db import connection

    from notifications_app.models import Notification

    earlier = Notification.objects.create(
        channel=channel, body="bench", ttl=3600, target_platforms=[_PLATFORM], status="sent"
    )
    parameters: dict[str, Any] = {"channel": channel.pk, "few": _FEW, "earlier": earlier.pk}
    with connection.cursor() as cursor:
        for statement in (_MARK, _TAG, _DELIVER):
            cursor.execute(statement, parameters)
        cursor.execute("VACUUM ANALYZE")
    return str(earlier.pk)


def _milliseconds(channel: "Channel", segment_id: "UUID | None") -> float:
    """Milliseconds for each of ten notifications."""
    from django.db import connection

    from notifications_app.models import Notification
    from notifications_app.pipeline import planning

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (session,) = cursor.fetchone()
    own = time.process_time()
    with spending(session) as database:
        for _ in range(10):
            Notification.objects.create(
                channel=channel,
                segment_id=segment_id,
                body="bench",
                ttl=3600,
                target_platforms=[_PLATFORM],
            )
            while planning.work(seconds=3600):
                pass
    if Notification.objects.exclude(recipient_count=_FEW).exists():
        raise RuntimeError("it was not planned for the few")
    filling.forget_notifications()
    return 100 * (time.process_time() - own + database.cpu)


_MARK: Final = """
UPDATE subscriptions_app_subscription SET attributes = attributes || '{"vip": "yes"}'
WHERE id IN (SELECT id FROM subscriptions_app_subscription WHERE channel_id = %(channel)s
             ORDER BY address_sha256 LIMIT %(few)s)
"""

# The same few, and each subscription has another tag.
_TAG: Final = """
INSERT INTO subscriptions_app_tag (channel_id, platform, tag, subscription_id)
SELECT channel_id, platform, unnest(CASE WHEN attributes ? 'vip' THEN ARRAY['team-7', 'all']
                                    ELSE ARRAY['all'] END), id
FROM subscriptions_app_subscription WHERE channel_id = %(channel)s
"""

# The same few.
_DELIVER: Final = """
INSERT INTO notifications_app_delivery (notification_id, subscription_id, batch_id, status)
SELECT %(earlier)s, id, 0, 1 FROM subscriptions_app_subscription
WHERE channel_id = %(channel)s AND attributes ? 'vip'
"""
