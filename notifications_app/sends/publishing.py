"""Sends what newsfeeds found.

One transaction writes the notifications and forgets what was found, while it holds the newsfeed. So
an entry has one notification, however many processes publish, and wherever they are killed.
"""

from dataclasses import replace
from datetime import date, datetime
from typing import Final
from zoneinfo import ZoneInfo

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, transaction

from channels_app.selectors import ChannelDeleted
from notifications_app.content.entries import filled
from notifications_app.content.placeholders import NotATemplate
from notifications_app.content.values import SendRequest
from notifications_app.errors import TooManyPending
from notifications_app.models import Newsfeed, Notification
from notifications_app.newsfeeds.checks import disable
from notifications_app.newsfeeds.comparing import Values
from notifications_app.sends.disabling import code_of
from notifications_app.sends.services import notification_accept
from notifications_app.sends.stored_sends import loaded
from pushsvc.common.blank_text import is_blank
from pushsvc.common.errors import PushsvcError, TooManyRequests, Unavailable
from pushsvc.common.store import sql

logger = structlog.stdlib.get_logger(__name__)

_WORDS: Final = 300


def publish_next() -> bool:
    """Sends the found entries of one newsfeed. Returns False if there is none. A newsfeed that
    cannot be sent for a reason that nobody expected is disabled, so that it delays no other."""
    with sql.brief_transaction():
        found = Newsfeed.objects.found_some().select_related("channel").order_by("pk")
        newsfeed = found.select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
        if newsfeed is None:
            return False
        try:
            with transaction.atomic():
                _publish(newsfeed)
        except (OperationalError, InterfaceError, Unavailable):
            raise
        except ChannelDeleted:
            pass  # asked for at this moment, so that nothing of the channel is sent
        except Exception as error:
            # Without the traceback of an error of the database, which would quote the row.
            quotes = isinstance(error, DatabaseError)
            name = type(error).__name__
            logger.error("newsfeed.failed", newsfeed=newsfeed.pk, error=name, exc_info=not quotes)
            newsfeed.refresh_from_db()
            disable(newsfeed, PushsvcError.code, f"{name}: the log has more.")
            newsfeed.save()
    return True


def sent_today(newsfeed: Newsfeed, now: datetime) -> int:
    """How many notifications it made today, by the channel's clock."""
    return newsfeed.sent_count if newsfeed.sent_on == _day(newsfeed, now) else 0


def request_of(newsfeed: Newsfeed, values: Values) -> SendRequest:
    """The send for an entry."""
    request = loaded(newsfeed.send)
    return replace(request, content=filled(request.content, values))


def _publish(newsfeed: Newsfeed) -> None:
    """Sends the newest entries that the day allows, the oldest of them first. The others are never
    sent."""
    now = sql.now()
    count = sent_today(newsfeed, now)
    left = max(newsfeed.daily_limit - count, 0)
    entries, newsfeed.found = newsfeed.found[:left], None
    for values in reversed(entries):
        notification = _send(newsfeed, values)
        if notification is not None:
            count, newsfeed.last_notification_id = count + 1, notification.pk
        if not newsfeed.is_enabled:
            break
    newsfeed.sent_on, newsfeed.sent_count = _day(newsfeed, now), count
    newsfeed.save()


def _send(newsfeed: Newsfeed, values: Values) -> Notification | None:
    """Returns the notification, or None if it was refused. A limit of the channel, or an entry that
    cannot be shown, costs only this entry; any other refusal disables the newsfeed."""
    try:
        request = request_of(newsfeed, values)
        if is_blank(request.content.body):
            newsfeed.last_error = "An entry has neither a title nor a text."
            return None
        with transaction.atomic():
            return notification_accept(
                channel=newsfeed.channel, request=request, sent_by=newsfeed.changed_by
            )
    except (Unavailable, ChannelDeleted):
        raise
    except NotATemplate as error:
        disable(newsfeed, "not_a_template", str(error))
    except PushsvcError as error:
        code = code_of(error)
        logger.warning("newsfeed.refused", newsfeed=newsfeed.pk, code=code)
        newsfeed.last_error = f"{code}: {error.detail}"[:_WORDS]
        if not isinstance(error, TooManyPending | TooManyRequests) and code not in _OF_ENTRY:
            disable(newsfeed, code, str(error.detail))
    return None


def _day(newsfeed: Newsfeed, now: datetime) -> date:
    return now.astimezone(ZoneInfo(newsfeed.channel.timezone)).date()


# Errors that another entry need not have.
_OF_ENTRY: Final = frozenset({"payload_too_large"})
