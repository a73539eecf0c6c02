"""Ends plans whose batches are done, and decides held expiries when a platform's batches are done.

Some responses report a dead device, but may also mean that the channel's configuration is wrong: a
foreign project, the other environment, another VAPID key. Such recipients, the suspects, bounced
at once. Whether their subscriptions expire is decided here, when the number of suspects is known.

In a send to fewer than five recipients, one suspect is always too many. There, other subscriptions
decide: if a push service took a message with the same VAPID key, the key is right.

Other responses name an error of ours without doubt (`refusal_events`), such as a wrong clock. They
count like suspects, because each push service has its own words for the same error.

A host's name that does not exist (`repeated_codes`) may be the error of a resolver that the
operator notices late. So it must be found at several sends over days. In a small send, it counts if
another recipient is no suspect.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from notifications_app.delivery.registry import TRANSPORTS
from notifications_app.models import Batch, Delivery, OutcomeMinute, Plan
from notifications_app.pipeline.transitions import UNCALLED
from notifications_app.querysets import PlanQuerySet
from notifications_app.states import STATES, DeliveryStatus, PlanStatus
from pushsvc.common.store import sql
from subscriptions_app.devices.selectors import keys_proven_by_others, unchanged_since
from subscriptions_app.devices.services import GoneSubscription, subscriptions_expire_or_prove

logger = structlog.stdlib.get_logger(__name__)

MASS_FAILURE_SHARE = 5  # if a fifth of the called recipients are suspects, no subscription expires
# How many sends, at least a day apart, must find a suspect with a code of `repeated_codes`.
REPEATED_SENDS = 4
_STEP = 500
_REPEATED_CODES = frozenset().union(*(each.repeated_codes for each in TRANSPORTS.values()))
_ALL_SUSPECT_CODES = frozenset().union(*(each.suspect_codes for each in TRANSPORTS.values()))
_SUSPECT_CODES = sorted(_ALL_SUSPECT_CODES - _REPEATED_CODES)
_ERROR_CODES = sorted(
    set().union(*(each.refusal_events for each in TRANSPORTS.values())) - _ALL_SUSPECT_CODES
)


def close_delivered_plans(limit: int = 1000) -> int:
    """Ends plans whose batches are all done. Plans with suspects become `settling`, others `done`.
    Returns how many."""
    return sql.execute(CLOSE, STATES | {"limit": limit})


def decide_next() -> bool:
    """Decides at most 500 held expiries of one platform of a notification. Returns False when
    nothing is left to decide."""
    with sql.brief_transaction():
        plan = _next_settling()
        if plan is None:
            return False
        called = plan.recipients - plan.uncalled
        if (plan.suspects + plan.errors) * MASS_FAILURE_SHARE < called:
            held = _held(plan, plan.started_at)
        else:
            is_small = called < MASS_FAILURE_SHARE and not plan.errors
            held = _of_small_send(plan, _held(plan, plan.started_at)) if is_small else []
            if len(held) < plan.suspects:
                logger.warning(
                    "expiry.withheld",
                    notification=plan.notification_id,
                    platform=plan.platform,
                    devices=plan.suspects - len(held),
                )
        subscriptions_expire_or_prove(channel_id=plan.channel_id, gone=held)
        if len(held) < _STEP:
            _parts(plan.notification_id, plan.platform).become(PlanStatus.DONE)
        return True


def _next_settling() -> Any:
    """Locks the first of `settling_plans`. Two ticks at once get different platforms."""
    own = settling_plans().select_for_update(no_key=True, skip_locked=True, of=("self",))
    return own.first()


def settling_plans() -> QuerySet[Any]:
    """The first plan of each notification's platform whose parts all have their outcomes. Adds the
    notification's `started_at`, and how many `recipients`, `suspects`, `uncalled` recipients and
    recipients with `errors` all parts have."""
    parts = _parts(OuterRef("notification"), OuterRef("platform"))
    unended = parts.filter(status__in=[PlanStatus.PLANNING, PlanStatus.DELIVERING])
    before = parts.filter(status=PlanStatus.SETTLING, pk__lt=OuterRef("pk"))
    batches = Batch.objects.filter(
        notification=OuterRef("notification"), platform=OuterRef("platform")
    ).values("platform")
    ended = OutcomeMinute.objects.filter(
        notification=OuterRef("notification"), platform=OuterRef("platform")
    ).values("platform")
    settling = Plan.objects.filter(
        ~Exists(unended), ~Exists(before), status=PlanStatus.SETTLING
    ).annotate(
        recipients=Subquery(parts.values("platform").values(sum=Sum("recipient_count"))),
        suspects=Coalesce(Subquery(batches.values(sum=Sum("suspect_count"))), 0),
        uncalled=Coalesce(Subquery(ended.filter(code__in=UNCALLED).values(sum=Sum("count"))), 0),
        errors=Coalesce(Subquery(ended.filter(code__in=_ERROR_CODES).values(sum=Sum("count"))), 0),
        started_at=F("notification__started_at"),
    )
    return settling.order_by("pk")


def _parts(notification: Any, platform: Any) -> PlanQuerySet[Plan]:
    return Plan.objects.filter(notification=notification, platform=platform)


def _held(plan: Plan, started_at: datetime) -> list[GoneSubscription]:
    """Held expiries of subscriptions that are still active and have not registered since the start,
    at most _STEP. Each step expires or counts what it found, so the next step finds others."""
    batches = Batch.objects.filter(
        notification_id=plan.notification_id, platform=plan.platform, suspect_count__gt=0
    )
    unchanged = unchanged_since(started_at).filter(pk=OuterRef("subscription_id"))
    suspects = Delivery.objects.filter(
        Q(Exists(unchanged), code__in=_SUSPECT_CODES)
        | Q(Exists(unchanged.countable()), code__in=_REPEATED_CODES),
        notification_id=plan.notification_id,
        batch_id__in=batches.values("pk"),
        status=DeliveryStatus.BOUNCED,
    )
    found = suspects.order_by("subscription_id").values_list("subscription_id", "code")
    return [
        GoneSubscription(
            id_, started_at, code, sends=REPEATED_SENDS if code in _REPEATED_CODES else 1
        )
        for id_, code in found[:_STEP]
    ]


def _of_small_send(plan: Any, held: Sequence[GoneSubscription]) -> list[GoneSubscription]:
    """Those that never took a message, while another subscription at the same push service took one
    with the same VAPID key. Names, if other recipients of the send are no suspects."""
    certain = [each.id for each in held if each.sends == 1]
    chosen = set(keys_proven_by_others(plan.channel_id, certain)) if certain else set()
    if plan.suspects < plan.recipients - plan.uncalled:
        chosen |= {each.id for each in held if each.sends > 1}
    return [each for each in held if each.id in chosen]


# In SQL, because the ORM locks rows only in an explicit transaction: two more round trips in every
# tick. SKIP LOCKED: two ticks at once do not wait for each other. OFFSET: open batches are looked
# up for each plan. A join might compare it with all.
CLOSE = """
UPDATE notifications_app_plan plan
SET status = CASE WHEN EXISTS (SELECT FROM notifications_app_batch
                               WHERE plan_id = plan.id AND suspect_count > 0)
             THEN %(plan_settling)s ELSE %(plan_done)s END
WHERE id = ANY(ARRAY(
  SELECT delivering.id FROM notifications_app_plan delivering
  WHERE delivering.status = %(plan_delivering)s AND NOT EXISTS (
    SELECT FROM notifications_app_batch
    WHERE notification_id = delivering.notification_id AND plan_id = delivering.id
      AND finished_at IS NULL OFFSET 0)
  ORDER BY delivering.id LIMIT %(limit)s
  FOR NO KEY UPDATE SKIP LOCKED))
"""
