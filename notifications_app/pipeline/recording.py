"""What a worker makes of the outcomes of one batch: rows, pauses, and what breakers and FCM's rate
learn. Only the task's thread uses it.
"""

import logging
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings

from channels_app.services import platform_pause
from notifications_app.delivery.registry import ServiceAccount
from notifications_app.delivery.types import Misconfigured, Outcome, Target
from notifications_app.pipeline import breakers, fcm_rate, outcomes, transitions
from notifications_app.pipeline.evidence import Evidence, evidence_of, refused_by_many
from notifications_app.pipeline.lease import HeldLease, Lease
from notifications_app.pipeline.outcomes import RowsRefused
from notifications_app.pipeline.reading import BatchRead
from notifications_app.pipeline.transitions import Transition

logger = logging.getLogger(__name__)

MOST_SOLO_ATTEMPTS = 3

Answers = Sequence[tuple[Target, Outcome]]


def pause(lease: Lease, version: int, refusal: Misconfigured) -> bool:
    """Pauses the platform on the channel, unless new credentials were stored meanwhile: only the
    version that was refused is paused."""
    return platform_pause(
        channel_id=lease.channel_id,
        platform=lease.platform,
        version=version,
        code=refusal.code,
        detail=refusal.detail,
    )


class Recorder:
    """`service_waits`: for how many seconds a breaker of the push service is open. `is_refused`:
    the credentials were. `has_refused_rows`: the database refuses to change some rows."""

    def __init__(self, held: HeldLease, batch: BatchRead) -> None:
        self._held = held
        self._lease = held.lease
        self._batch = batch
        self._probed: list[tuple[Target, Outcome]] | None = None
        self.service_waits = 0.0
        self.is_refused = False
        self.has_refused_rows = False

    @property
    def must_stop(self) -> bool:
        """Whether no further call is to be made."""
        return self.is_refused or self.service_waits > 0 or self._held.is_halted

    def callable_targets(self) -> list[Target]:
        """The targets to call. Writes the bounces of all other recipients: whose subscription is
        not active, whose time is over, and who crashed worker after worker alone."""
        bounces, targets = [], []
        for delivery in self._batch.due.values():
            target = self._batch.targets.by_id.get(delivery.subscription_id)
            code = transitions.UNSUBSCRIBED if target is None else self._code_of(delivery)
            if target is None or code:
                bounces.append(transitions.bounce(delivery, code))
            else:
                targets.append(target)
        if bounces:
            self._write(bounces)
        return targets

    def begin_alone(self, target: Target) -> bool:
        """Notes a solo attempt before its call. False if its outcome could not be written; then no
        call is to be made, or the recipient would be called without end."""
        try:
            self._held.persistently(
                lambda: outcomes.begin_alone(self._lease, target.subscription_id)
            )
        except RowsRefused:
            self.has_refused_rows = True
            return False
        return True

    def begin_probe(self) -> None:
        """From now on outcomes are those of a probe."""
        self._probed = []

    def end_probe(self) -> None:
        """Evaluates a probe as a whole, because its first outcomes may be those that fail fast."""
        seen = self._evidence(self._probed or [])
        lease = self._lease
        self.service_waits = breakers.end_probe(
            lease.push_service, lease.channel_id, **seen._asdict()
        )

    def take(self, answers: Answers) -> None:
        """Writes outcomes. If there are none, renews the lease when that is due."""
        if not answers:
            self._held.renew_if_due()
            return
        for _, outcome in answers:
            if isinstance(outcome, Misconfigured) and not self.is_refused:
                self._pause(outcome)
        self._write(
            [self._transition(target.subscription_id, outcome) for target, outcome in answers]
        )
        self._tell_breaker(answers)
        self._tell_rate(answers)
        self._warn_of_refused_keys(answers)

    def _code_of(self, delivery: transitions.DueDelivery) -> str:
        """Why the recipient is not called; "" if it is."""
        limits = self._batch.limits
        if transitions.out_of_time(delivery, now=self._lease.now(), limits=limits):
            return transitions.EXPIRED
        if delivery.solo_attempts >= MOST_SOLO_ATTEMPTS:
            return transitions.INTERNAL_ERROR
        return ""

    def _transition(self, subscription_id: UUID, outcome: Outcome) -> Transition:
        """An outcome that cannot be evaluated must not cost the other recipients theirs: an outcome
        that is not written is a message that is sent again."""
        delivery = self._batch.due[subscription_id]
        targets = self._batch.targets
        try:
            return transitions.transition_of(
                delivery,
                outcome,
                registered_at=targets.registered_at[subscription_id],
                now=self._lease.now(),
                limits=self._batch.limits,
                is_unproven=subscription_id in targets.unproven,
            )
        except Exception as error:  # noqa: BLE001 (a fault of ours, whatever it is)
            logger.error("delivery.internal_error", extra={"error": type(error).__name__})
            return transitions.bounce(delivery, transitions.INTERNAL_ERROR, attempts=1)

    def _write(self, changes: Sequence[Transition]) -> None:
        try:
            self._held.write_and_renew(lambda: outcomes.record(self._lease, changes))
        except RowsRefused:
            self.has_refused_rows = True

    def _pause(self, refusal: Misconfigured) -> None:
        self.is_refused = True
        version = self._batch.targets.credential_version
        self._held.persistently(lambda: pause(self._lease, version, refusal))

    def _tell_breaker(self, answers: Answers) -> None:
        if self._probed is not None:
            self._probed += answers
            return
        lease, seen = self._lease, self._evidence(answers)
        waits = breakers.record(lease.push_service, lease.channel_id, **seen._asdict())
        self.service_waits = max(self.service_waits, waits)

    def _evidence(self, answers: Answers) -> Evidence:
        return evidence_of(
            answers,
            service=self._lease.push_service,
            trusted_origins=settings.WEBPUSH_TRUSTED_ORIGINS,
            is_first=lambda target: not self._batch.due[target.subscription_id].attempts,
        )

    def _tell_rate(self, answers: Answers) -> None:
        credentials = self._batch.targets.credentials
        if isinstance(credentials, ServiceAccount):
            fcm_rate.learn(self._lease.channel_id, credentials, (outcome for _, outcome in answers))

    def _warn_of_refused_keys(self, answers: Answers) -> None:
        for event, refused in refused_by_many(outcome for _, outcome in answers):
            extra = {"channel": self._lease.channel_id, "refused": refused, "of": len(answers)}
            logger.warning(event, extra=extra)
