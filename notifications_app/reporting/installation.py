"""Unfinished work of the whole installation, for /metrics. No query reads finished work."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, F, Min, Q, Sum
from django.db.models.functions import Now
from django.db.models.lookups import LessThanOrEqual

from channels_app.models import Feed, WebhookAttempt, WebhookState
from notifications_app.models import HAS_NO_RATE, RECIPIENTS_LEFT, WANTED_SINCE, Batch, Notification
from notifications_app.reporting.limited import is_not_limited
from notifications_app.states import NotificationStatus


@dataclass(frozen=True, slots=True)
class OpenBatches:
    """`lateness`: how long ago the first batch became due; negative if none is due. Batches of
    paused and stopped notifications, and those that wait because a push service limits their
    channel, are counted, but are not late. After a pause, lateness counts from its end.
    `recipients`: how many recipients wait. `due_recipients`: those of batches that are due, with
    the same exceptions."""

    count: int
    recipients: int
    due_recipients: int
    lateness: timedelta


def open_notifications() -> tuple[Counter[str], timedelta]:
    """Counts by state, and how long the oldest due notification has waited for its start. A paused
    notification counts only as paused."""
    is_paused = Q(paused_at__isnull=False)
    is_due = ~is_paused & Q(scheduled_at__lte=Now())
    pending = Notification.objects.filter(status=NotificationStatus.PENDING).aggregate(
        scheduled=Count("pk", filter=~is_paused & ~is_due),
        due=Count("pk", filter=is_due),
        paused=Count("pk", filter=is_paused),
        lateness=Now() - Min("scheduled_at", filter=is_due),
    )
    running = Notification.objects.filter(status=NotificationStatus.PROCESSING).aggregate(
        processing=Count("pk", filter=~is_paused), paused=Count("pk", filter=is_paused)
    )
    lateness = pending.pop("lateness") or timedelta()
    return Counter(pending) + Counter(running), lateness


def waiting_webhooks() -> tuple[int, timedelta]:
    """How many messages wait for enabled webhooks, and how long ago the first became due, or the
    first fact that is in no message yet became true. Messages for a webhook whose calls fail or
    whose receiver is slow are not late, because it gets only a few at a time."""
    waiting = WebhookAttempt.objects.filter(state=WebhookState.WAITING, webhook__is_enabled=True)
    is_late = Q(due_at__lte=Now(), webhook__failing_since=None, webhook__is_slow=False)
    found = waiting.aggregate(
        count=Count("message_id"), lateness=Now() - Min("due_at", filter=is_late)
    )
    facts = Feed.objects.filter(unreadable_at=None).annotate(age=Now() - F("at"))
    ages = [
        found["lateness"],
        facts.order_by("pk").values_list("age", flat=True).first(),
        timedelta(),
    ]
    return found["count"], max(age for age in ages if age is not None)


def open_batches() -> Mapping[tuple[str, str], OpenBatches]:
    """Open batches by platform and status. Pairs without batches are missing."""
    groups = Batch.objects.open().values("platform", "status")
    may_be_late = Q(plan__halted_at__isnull=True) & is_not_limited() & HAS_NO_RATE
    first = Min(WANTED_SINCE, filter=may_be_late)
    is_due = may_be_late & Q(LessThanOrEqual(WANTED_SINCE, Now()))
    counted = groups.annotate(
        count=Count("pk"),
        recipients=Sum(RECIPIENTS_LEFT),
        due_recipients=Sum(RECIPIENTS_LEFT, filter=is_due, default=0),
        lateness=Now() - first,
    )
    return {
        (row["platform"], row["status"]): OpenBatches(
            row["count"], row["recipients"], row["due_recipients"], row["lateness"] or timedelta()
        )
        for row in counted
    }
