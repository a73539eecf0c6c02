"""Limits what a channel's sends store: how much in an hour, and how much that waits to be sent.

Plain sends are limited only in number. The checks here cost them no statement and no round trip.
"""

import json
from typing import Final
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext

from notifications_app.content.values import SendRequest
from notifications_app.errors import TooManyPending
from notifications_app.models import Notification
from pushsvc.common.http.ratelimit import Limit, enforce
from pushsvc.common.store import sql

MOST_WAITING_TARGETS: Final = 100_000
FEW_TARGETS: Final = 10  # of a send that is not counted
_LARGE_BYTES: Final = 8 * 1024
_TARGET_BYTES: Final = 400  # a row with its index entries, besides its values


def check_volume(channel_id: UUID, request: SendRequest) -> None:
    """Counts what a large send stores, in KiB, towards the channel's limit for an hour. Raises
    TooManyRequests."""
    size = _stored_bytes(request)
    if size > _LARGE_BYTES:
        quota = settings.LARGE_SEND_KILOBYTES_PER_HOUR
        enforce(Limit("large-sends", str(channel_id), quota, 3600), cost=size // 1024)


def check_pending(channel_id: UUID, request: SendRequest, *, edited: UUID | None = None) -> None:
    """Raises TooManyPending if the channel may have no further scheduled send, or not this one with
    many targets. `edited`: the pending notification that the request replaces.

    Takes no lock, because all sends of a channel would wait for it. So each request that runs at
    the same time may exceed the limit by its own send.
    """
    if request.scheduled_at is None and request.local_at is None:
        return
    most = settings.PENDING_PER_CHANNEL
    ((pending,),) = sql.rows(_PENDING, {"channel": channel_id, "limit": most + 1})
    if pending >= most + (edited is not None):
        raise TooManyPending(
            gettext("The channel has %(most)s notifications that wait to be sent.")
            % {"most": f"{most:,}"}
        )
    if len(request.targets) <= FEW_TARGETS:
        return
    ((waiting,),) = sql.rows(_WAITING_TARGETS, {"channel": channel_id, "edited": edited})
    if waiting + len(request.targets) > MOST_WAITING_TARGETS:
        raise TooManyPending(
            gettext(
                "The channel's waiting notifications have %(waiting)s targets of at most %(most)s."
            )
            % {"waiting": f"{waiting:,}", "most": f"{MOST_WAITING_TARGETS:,}"}
        )


def _stored_bytes(request: SendRequest) -> int:
    """About how much the send stores. 0 for one of which every part is small: the content without
    translations fits into a payload for each platform."""
    content = request.content
    size = 0
    if len(request.targets) > FEW_TARGETS:
        values = sum(_json_bytes(each.vars) for each in request.targets if each.vars)
        size = _TARGET_BYTES * len(request.targets) + values
    if request.rule is not None:
        size += _json_bytes(request.rule)
    if content.translations or content.variants:
        size += _json_bytes(Notification.values_of(content)["extras"])
    return size


def _json_bytes(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


# Read from the index of pending notifications alone, and no further than the limit.
_PENDING: Final = """
SELECT count(*) FROM (
  SELECT FROM notifications_app_notification
  WHERE channel_id = %(channel)s AND status = 'pending' LIMIT %(limit)s
) AS pending
"""

# The targets of each notification are counted apart, so that PostgreSQL reads ranges of the primary
# key and never the whole table.
_WAITING_TARGETS: Final = """
SELECT coalesce(sum(own.count), 0)::bigint FROM notifications_app_notification AS notification
CROSS JOIN LATERAL (
  SELECT count(*) FROM notifications_app_target WHERE notification_id = notification.id
) AS own
WHERE channel_id = %(channel)s AND status = 'pending' AND has_targets
  AND id IS DISTINCT FROM %(edited)s
"""
