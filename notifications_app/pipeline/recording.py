"""Records the outcomes of one pass: rows, pauses, evidence for breakers and for rates.

Only the task's thread uses it.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction

from channels_app.feeds import EventKind, message_add
from channels_app.pauses import platform_pause
from notifications_app.delivery.registry import ServiceAccount
from notifications_app.delivery.types import Misconfigured, Outcome
from notifications_app.pipeline import breakers, fcm_rate, outcomes, transitions, web_rate
from notifications_app.pipeline.evidence import (
    Evidence,
    evidence_of,
    refused_by_many,
    throttling_of,
)
from notifications_app.pipeline.lease import HeldLeases, Lease
from notifications_app.pipeline.outcomes import RowsRefused
from notifications_app.pipeline.reading import PassRead, Recipient
from notifications_app.pipeline.transitions import Transition
from pushsvc.common import correlation
from pushsvc.common.telemetry import spans

logger = structlog.stdlib.get_logger(__name__)

MOST_SOLO_ATTEMPTS = 3

Results = Sequence[tuple[Recipient, Outcome]]


def pause(lease: Lease, version: int, refusal: Misconfigured) -> bool:
    """Pauses the platform on the channel. Does nothing if newer credentials were stored meanwhile,
    because only the refused version is paused. Returns whether it paused."""
    return platform_pause(
        channel_id=lease.channel_id,
        platform=lease.platform,
        version=version,
        code=refusal.code,
        detail=refusal.detail,
    )


def tell_limit(lease: Lease, per_minute: int) -> None:
    """Tells webhooks about a learned limit. If the database is away, it only logs, because the
    limit is in Redis already."""
    detail = f"It accepts about {per_minute:,} messages a minute of this channel."
    try:
        with transaction.atomic():
            message_add(
                EventKind.LIMITED,
                lease.channel_id,
                platform=lease.platform,
                code=lease.push_service,
                detail=detail,
            )
    except DatabaseError as error:
        logger.warning("limit.untold", channel=lease.channel_id, error=type(error).__name__)


class Recorder:
    """Records the outcomes of one pass. `service_waits`: for how many seconds a breaker of the push
    service is open, or the service throttles the channel. `is_trial_accepted`: a trial found that
    it does not. `are_credentials_refused`: those of the platform. `with_refused_rows`: ids of
    batches with rows that the database refuses to change. `last_outcome`: of the calls so far."""

    def __init__(self, held: HeldLeases, work: PassRead, standing: web_rate.Standing) -> None:
        self._held = held
        self._standing = standing
        self._is_limited = standing.is_limited
        self._lease = held.open[0]  # any: they share channel, platform, push service and clock
        self._work = work
        self._probed: list[tuple[Recipient, Outcome]] | None = None
        self.service_waits = 0.0
        self.is_trial_accepted = False
        self.are_credentials_refused = False
        self.with_refused_rows: set[int] = set()
        self.last_outcome: Outcome | None = None

    @property
    def must_stop(self) -> bool:
        """Whether no further call is to be made."""
        return self.are_credentials_refused or self.service_waits > 0 or self._held.must_stop

    def callable_recipients(self) -> list[Recipient]:
        """Returns the recipients to call. Bounces all others: withdrawn, out of time, with too many
        solo attempts, or without a message. Those with quiet hours wait."""
        bounces = [transitions.bounce(*each) for each in self._work.withdrawn]
        bounces += self._work.postponed
        recipients, now = [], self._lease.now()
        for recipient in self._work.recipients:
            code, detail = self._reason_of(recipient, now)
            if code:
                bounces.append(transitions.bounce(recipient.delivery, code, detail=detail))
            else:
                recipients.append(recipient)
        if bounces:
            self._write(bounces)
        return recipients

    def begin_alone(self, recipient: Recipient) -> bool:
        """Records a solo attempt before its call. Returns False if the database refuses to change
        the row; then the call must not be made, or it would be repeated without end."""
        try:
            self._held.persistently(
                lambda: outcomes.begin_alone(self._lease, recipient.delivery.subscription_id)
            )
        except RowsRefused:
            self.with_refused_rows.add(self._lease.batch_id)
            return False
        return True

    def begin_probe(self) -> None:
        """Collects further outcomes as those of a probe."""
        self._probed = []

    def end_probe(self) -> None:
        """Evaluates the probe as a whole, because fast failures may be its first outcomes."""
        seen = self._evidence(self._probed or [])
        lease = self._lease
        self.service_waits = breakers.end_probe(
            lease.push_service, lease.channel_id, **seen._asdict()
        )

    def take(self, results: Results) -> None:
        """Writes outcomes. Without outcomes, renews the leases if a renewal is due."""
        if not results:
            if self._held.is_renewal_due:
                self._write([])
            return
        self.last_outcome = results[-1][1]
        for _, outcome in results:
            if isinstance(outcome, Misconfigured) and not self.are_credentials_refused:
                self._pause(outcome)
        now = self._lease.now()
        self._write([self._transition(*result, now) for result in results])
        self._report_to_services(results)
        self._report_to_fcm_rate(results)
        self._warn_of_refused_keys(results)

    def _reason_of(self, recipient: Recipient, now: datetime) -> tuple[str, str]:
        """Code and detail of why the recipient is not called; empty if it is called."""
        delivery, limits = recipient.delivery, recipient.limits
        is_limited = self._is_limited
        if transitions.out_of_time(delivery, now=now, limits=limits, is_limited=is_limited):
            return transitions.EXPIRED, ""
        if delivery.solo_attempts >= MOST_SOLO_ATTEMPTS:
            return transitions.INTERNAL_ERROR, ""
        unsendable = recipient.unsendable
        return (unsendable.code, unsendable.detail) if unsendable else ("", "")

    def _transition(self, recipient: Recipient, outcome: Outcome, now: datetime) -> Transition:
        """The transition of an outcome; a bounce as `internal_error` if it cannot be evaluated.
        Raising would lose the flush's other outcomes, and their messages would be sent again."""
        try:
            return transitions.transition_of(
                recipient.delivery,
                outcome,
                registered_at=recipient.device.registered_at,
                now=now,
                limits=recipient.limits,
                is_unproven=not recipient.device.is_proven,
                is_limited=self._is_limited,
            )
        except Exception as error:  # noqa: BLE001 (an error of ours, whatever it is)
            logger.error("delivery.internal_error", error=type(error).__name__)
            return transitions.bounce(recipient.delivery, transitions.INTERNAL_ERROR, attempts=1)

    def _write(self, changes: Sequence[Transition]) -> None:
        with spans.span("flush", correlation.current(), outcomes=len(changes)):
            renewal = self._held.write_and_renew(lambda leases: outcomes.record(leases, changes))
        self.with_refused_rows |= renewal.with_refused_rows
        if changes:
            logger.info("outcomes.recorded", **_counts(changes))

    def _pause(self, refusal: Misconfigured) -> None:
        self.are_credentials_refused = True
        version = self._work.credential_version
        self._held.persistently(lambda: pause(self._lease, version, refusal))

    def _report_to_services(self, results: Results) -> None:
        if self._probed is not None:
            self._probed += results
            return
        lease, seen = self._lease, self._evidence(results)
        if web_rate.is_rated(lease.platform, lease.push_service):
            waits = self._report_to_web_rate(results, seen)
        else:
            waits = breakers.record(lease.push_service, lease.channel_id, **seen._asdict())
        self.service_waits = max(self.service_waits, waits)

    def _report_to_web_rate(self, results: Results, seen: Evidence) -> float:
        """Includes the report to the breaker. The results after a limit was learned are no
        attempts."""
        lease = self._lease
        throttling = throttling_of(
            results,
            service=lease.push_service,
            trusted_origins=settings.WEBPUSH_TRUSTED_ORIGINS,
            are_retries_counted=self._is_limited,
        )
        verdict = web_rate.record(
            lease.push_service,
            lease.channel_id,
            seen,
            throttling,
            is_trial=self._standing.is_trial,
        )
        self._is_limited |= verdict.is_limited
        self.is_trial_accepted |= verdict.is_cleared
        if verdict.learned is not None:
            tell_limit(lease, verdict.learned)
        return verdict.wait_seconds

    def _evidence(self, results: Results) -> Evidence:
        return evidence_of(
            results,
            service=self._lease.push_service,
            trusted_origins=settings.WEBPUSH_TRUSTED_ORIGINS,
        )

    def _report_to_fcm_rate(self, results: Results) -> None:
        credentials = self._work.credentials
        if isinstance(credentials, ServiceAccount):
            fcm_rate.learn(self._lease.channel_id, credentials, (outcome for _, outcome in results))

    def _warn_of_refused_keys(self, results: Results) -> None:
        for event, refused in refused_by_many(outcome for _, outcome in results):
            channel_id = self._lease.channel_id
            logger.warning(event, channel=channel_id, refused=refused, of=len(results))


def _counts(changes: Sequence[Transition]) -> dict[str, object]:
    """How many recipients were delivered, bounced and left waiting, and the codes of the bounced
    and the waiting."""
    statuses = Counter(change.status for change in changes)
    counted = {status.name.lower(): count for status, count in statuses.items()}
    return {**counted, "codes": dict(Counter(change.code for change in changes if change.code))}
