"""Fires automations: whose time has come becomes a target of the day's notification.

One transaction takes entries from the queue, judges them and adds a slice of targets with its part
of the plan, while it holds the automation. So whoever leaves the queue is a target once, however
many processes fire, and wherever they are killed. docs/automations.md explains the design.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, transaction
from django.db.models import F, Max, Q
from django.db.models.functions import Now

from channels_app.selectors import ChannelDeleted
from notifications_app.content.values import SendRequest, TargetId
from notifications_app.errors import SegmentNotFound
from notifications_app.models import (
    SLICE_TARGETS,
    Automation,
    AutomationDay,
    Driver,
    Notification,
    Plan,
    Recipient,
    Target,
)
from notifications_app.pipeline import wakeup
from notifications_app.pipeline.followers import AGAIN_DAYS, LATE
from notifications_app.pipeline.plan_queue import STARTED, TTL, note_started
from notifications_app.sends.checks import with_defaults
from notifications_app.sends.disabling import code_of, disable
from notifications_app.sends.services import notification_accept
from notifications_app.sends.stored_sends import loaded
from notifications_app.sends.unclicked import unclicked_note
from notifications_app.states import STATES, NotificationStatus, PlanStatus
from pushsvc.common.errors import PushsvcError, TooManyRequests, Unavailable
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.segments.compiler import EVERYBODY, Condition, compiled
from subscriptions_app.segments.selectors import segment_find

logger = structlog.stdlib.get_logger(__name__)

EVERY: Final = timedelta(minutes=1)  # an automation is fired, unless more is due
_AT_ONCE: Final = timedelta()
_LONGEST_DAY: Final = timedelta(hours=25)  # when clocks are put back
_CANCELLED: Final = (
    "PostgreSQL cancelled a statement. Raise statement_timeout, lock_timeout or temp_file_limit "
    "for pushsvc, or simplify the rule."
)


def fire_next() -> bool:
    """Fires one slice of one automation. Returns False if none is due. One that has more goes
    behind all others that are due. An automation that cannot be fired for a reason that nobody
    expected is disabled, so that it delays no other."""
    with sql.brief_transaction():
        due = Automation.objects.due().select_related("channel").order_by("fire_at")
        own = due.select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
        if own is None:
            return False
        try:
            with transaction.atomic():
                is_more = _fire(own)
        except (OperationalError, InterfaceError, Unavailable) as error:
            if not sql.is_cancelled(error):
                raise
            # It may happen each time, and others must not wait for that.
            logger.warning("automation.cancelled", automation=own.pk, remedy=_CANCELLED)
            _wait(own)
        except ChannelDeleted:
            pass  # asked for at this moment, so that the automation is no longer due
        except TooManyRequests:
            _wait(own)  # a limit of the channel, which may allow it later
        except PushsvcError as error:
            logger.warning("automation.refused", automation=own.pk, code=code_of(error))
            disable(own, code_of(error), error.detail)
        except Exception as error:
            # Without the traceback of an error of the database, which would quote the row.
            name, quotes = type(error).__name__, isinstance(error, DatabaseError)
            logger.error("automation.failed", automation=own.pk, error=name, exc_info=not quotes)
            disable(own, PushsvcError.code, f"{name}: the log has more.")
        else:
            _wait(own, _AT_ONCE if is_more else EVERY)
    return True


@dataclass(frozen=True)
class _Judged:
    """An entry that left the queue. `code`: why it is skipped; "" if it is fired."""

    code: str
    external_id: str | None
    subscription_id: UUID | None
    platform: str | None

    @property
    def target(self) -> TargetId:
        if self.external_id is not None:
            return TargetId(external_id=self.external_id)
        return TargetId(subscription_id=self.subscription_id)


def _fire(automation: Automation) -> bool:
    """Returns whether more may be due."""
    now = sql.now()
    is_more_unread = unclicked_note(automation)
    if not Automation.objects.filter(pk=automation.pk).with_due_entries().exists():
        return is_more_unread
    day = _day(automation, now)
    notification = Notification.objects.get(pk=day.notification_id) if day.notification_id else None
    send = loaded(automation.send)
    platforms = (
        tuple(map(Platform, notification.target_platforms))
        if notification
        else with_defaults(automation.channel, send).target_platforms
    )
    is_stopped = notification is not None and not _keepers(notification.pk)
    judged = _judge(
        automation, send, platforms, now=now, of_day=notification, is_stopped=is_stopped
    )
    fired = [each for each in judged if not each.code]
    counts = Counter(each.code for each in judged if each.code)
    if fired:
        if notification is None:
            notification = _begin(automation, day, send, fired[0].target)
        added = _add_slice(notification, fired, platforms)
        counts += Counter(fired=added, repeated=len(fired) - added)
    own = automation.days.filter(begins_at=day.begins_at)
    changes = {name: F(name) + number for name, number in counts.items()}
    own.update(notification_id=notification.pk if notification else None, **changes)
    logger.info(
        "automation.fired",
        automation=automation.pk,
        channel=automation.channel_id,
        notification=notification.pk if notification else None,
        **counts,
    )
    return is_more_unread or len(judged) == SLICE_TARGETS


def _wait(automation: Automation, by: timedelta = EVERY) -> None:
    Automation.objects.filter(pk=automation.pk).update(fire_at=Now() + by)


def _day(automation: Automation, now: datetime) -> AutomationDay:
    """The day of the automation, which is inserted if it is new. If its notification has ended, but
    was not stopped, the day is over."""
    day = automation.days.filter(ends_at__gt=now).order_by("-begins_at").first()
    if day is not None and (day.notification_id is None or _may_go_on(day.notification_id)):
        return day
    ends_at = day_end(now, automation.channel.timezone)
    return AutomationDay.objects.create(automation=automation, begins_at=now, ends_at=ends_at)


def day_end(now: datetime, timezone: str) -> datetime:
    """The first moment of the next day in the time zone, at least a minute from now. Where the
    clocks are put forward at midnight, the day begins at one."""
    zone = ZoneInfo(timezone)
    midnight = datetime.combine(now.astimezone(zone).date() + timedelta(days=1), time(), zone)
    return max(midnight.astimezone(UTC), now + EVERY)


def _may_go_on(notification_id: UUID) -> bool:
    """Whether the day's notification can take targets, or was stopped by somebody."""
    if _keepers(notification_id):
        return True
    own = Notification.objects.filter(pk=notification_id)
    is_cancelled = Q(status=NotificationStatus.CANCELLED)
    return own.filter(is_cancelled | Q(stopped_at__isnull=False)).exists()


def _keepers(notification_id: UUID) -> list[Any]:
    """Locks the plans that keep the notification from ending. None if it has ended, or was
    stopped."""
    own = Plan.objects.filter(notification=notification_id, part=0, status=PlanStatus.PLANNING)
    return own.lock_all()


def _condition(automation: Automation, send: SendRequest, now: datetime) -> Condition:
    rule = send.rule
    if send.segment_id is not None:
        segment = segment_find(channel_id=automation.channel_id, segment_id=send.segment_id)
        if segment is None:
            raise SegmentNotFound
        rule = segment.rule
    return EVERYBODY if rule is None else compiled(rule, now=now)


def _judge(
    automation: Automation,
    send: SendRequest,
    platforms: Sequence[Platform],
    *,
    now: datetime,
    of_day: Notification | None,
    is_stopped: bool,
) -> list[_Judged]:
    """Takes the entries that have been due longest from the queue, and notes whom of them the
    automation contacts."""
    condition = _condition(automation, send, now)
    parameters = {
        **condition.parameters,
        "automation": automation.pk,
        "channel": automation.channel_id,
        "most": SLICE_TARGETS,
        "late": LATE,
        "is_stopped": is_stopped,
        "is_for_person": automation.recipient == Recipient.PERSON,
        "platforms": list(platforms),
        "apart": automation.apart,
        "of_day": of_day.pk if of_day and _may_repeat_in_a_day(automation) else None,
        "kept_days": (automation.once_per_days or AGAIN_DAYS) + 1,
    }
    statement = _JUDGE.format(condition=condition.text)
    return [_Judged(*row) for row in sql.rows(statement, parameters)]


def _may_repeat_in_a_day(automation: Automation) -> bool:
    """Whether a contact may be followed by another one on the same day, which has one notification
    and so one target for both."""
    return automation.apart is not None and automation.apart < _LONGEST_DAY


def _begin(
    automation: Automation, day: AutomationDay, send: SendRequest, first: TargetId
) -> Notification:
    """Makes the day's notification and starts it, with a keeper for each platform."""
    request = replace(
        send,
        segment_id=None,
        rule=None,
        targets=(first,),
        name=send.name or automation.name,
    )
    notification = notification_accept(
        channel=automation.channel, request=request, sent_by=automation.changed_by
    )
    parameters = {
        "id": notification.pk,
        "ends_at": day.ends_at,
        "driver": Driver.SLICE,
        "ttl_zero": settings.TTL_ZERO_SECONDS,
    }
    sql.execute(_BEGIN, STATES | parameters)
    transaction.on_commit(lambda: note_started({notification.pk}))
    return notification


def _add_slice(
    notification: Notification, fired: Sequence[_Judged], platforms: Sequence[Platform]
) -> int:
    """Adds the targets with a part of the plan for each of their platforms. Its keepers are locked.
    Returns how many targets it has of them."""
    own = Plan.objects.filter(notification=notification)
    halted_at = own.filter(part=0).values_list("halted_at", flat=True)[0]
    part = (own.aggregate(last=Max("part"))["last"] or 0) + 1
    first = (part - 1) * SLICE_TARGETS
    targets = [each.target for each in fired]
    Target.objects.add(
        notification.pk, channel_id=notification.channel_id, targets=targets, first=first
    )
    is_for_person = any(each.external_id is not None for each in fired)
    named = {each.platform for each in fired}
    parameters = {
        "id": notification.pk,
        "part": part,
        "driver": Driver.SLICE,
        "halted_at": halted_at,
        "ttl_zero": settings.TTL_ZERO_SECONDS,
        "platforms": [each for each in platforms if is_for_person or each in named],
    }
    sql.execute(_ADD_PART, parameters)
    transaction.on_commit(lambda: wakeup.wake("plan"))
    return Target.objects.filter(notification_id=notification.pk, position__gte=first).count()


# Raw, because the ORM has neither DELETE … RETURNING nor conditional inserts. Entries that an
# erasure has locked are skipped. An entry without a code passed, and `taken` has those whose key
# was not contacted, so the others are repeated. OFFSET 0: each device is read by its id. ARRAY,
# because PostgreSQL may evaluate a set with a limit again for each row, and lock other rows then.
_JUDGE: Final = """
WITH due AS MATERIALIZED (
  DELETE FROM notifications_app_automationentry WHERE id = ANY(ARRAY(
    SELECT id FROM notifications_app_automationentry
    WHERE automation_id = %(automation)s AND due_at <= statement_timestamp()
    ORDER BY automation_id, due_at, id LIMIT %(most)s FOR UPDATE SKIP LOCKED))
  RETURNING id, subscription_id, due_at
), judged AS MATERIALIZED (
  SELECT due.id, due.subscription_id, subscription.platform, person.external_id,
    coalesce(subscription.person_id, subscription.id) AS key,
    CASE WHEN %(is_stopped)s THEN 'stopped'
      WHEN due.due_at < statement_timestamp() - %(late)s::interval THEN 'late'
      WHEN subscription.id IS NULL OR subscription.expired_at IS NOT NULL THEN 'gone'
      WHEN person.id IS NULL AND NOT subscription.platform = ANY (%(platforms)s) THEN 'platform'
      WHEN NOT {condition} THEN 'condition'
      WHEN EXISTS (SELECT FROM notifications_app_target AS target
                   WHERE target.notification_id = %(of_day)s::uuid
                     AND target.external_id = person.external_id) THEN 'repeated'
      WHEN person.id IS NULL AND EXISTS (
        SELECT FROM notifications_app_target AS target
        WHERE target.notification_id = %(of_day)s::uuid
          AND target.subscription_id = subscription.id) THEN 'repeated' END AS code
  FROM due LEFT JOIN LATERAL (
    SELECT * FROM subscriptions_app_subscription
    WHERE id = due.subscription_id AND channel_id = %(channel)s OFFSET 0) AS subscription ON true
  LEFT JOIN LATERAL (
    SELECT id, external_id FROM subscriptions_app_person
    WHERE id = subscription.person_id AND %(is_for_person)s OFFSET 0) AS person ON true
), first AS MATERIALIZED (
  SELECT DISTINCT ON (key) id, key FROM judged WHERE code IS NULL ORDER BY key, id
), taken AS (
  INSERT INTO notifications_app_automationcontact AS contact (automation_id, key, at, expires_on)
  SELECT %(automation)s, key, statement_timestamp(),
    (statement_timestamp() AT TIME ZONE 'UTC')::date + %(kept_days)s
  FROM first ORDER BY key
  ON CONFLICT (automation_id, key) DO UPDATE
  SET at = excluded.at, expires_on = excluded.expires_on
  WHERE contact.at <= statement_timestamp() - %(apart)s::interval
  RETURNING key
)
SELECT coalesce(judged.code, CASE WHEN taken.key IS NULL THEN 'repeated' ELSE '' END),
  external_id, subscription_id, platform
FROM judged LEFT JOIN first ON first.id = judged.id LEFT JOIN taken ON taken.key = first.key
ORDER BY judged.id
"""

_STARTED: Final = STARTED.format(
    chosen="SELECT %(id)s::uuid",
    deadline=f"%(ends_at)s::timestamptz + {TTL}",
    ttl=TTL,
    more="",
    returned="",
)
_BEGIN: Final = f"""
WITH {_STARTED}
INSERT INTO notifications_app_plan
  (notification_id, channel_id, platform, part, driver, release_at, due_at, deadline_at)
SELECT started.id, started.channel_id, wanted.platform, 0, %(driver)s, %(ends_at)s, %(ends_at)s,
  %(ends_at)s::timestamptz + started.time_to_live
FROM started CROSS JOIN jsonb_array_elements_text(target_platforms) AS wanted (platform)
ORDER BY wanted.platform
"""  # noqa: S608 - text of our own
_ADD_PART: Final = f"""
INSERT INTO notifications_app_plan
  (notification_id, channel_id, platform, part, driver, release_at, due_at, deadline_at, halted_at)
SELECT id, channel_id, wanted.platform, %(part)s, %(driver)s, statement_timestamp(),
  statement_timestamp(), statement_timestamp() + {TTL}, %(halted_at)s
FROM notifications_app_notification
CROSS JOIN unnest(%(platforms)s::text[]) AS wanted (platform) WHERE id = %(id)s
ORDER BY wanted.platform
"""  # noqa: S608 - text of our own
