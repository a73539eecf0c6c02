"""Claims batches and hands them to a transport: claim → read → calls → outcomes, written as they
come. A worker that dies repeats only what was under way or not yet written.
"""

import contextlib
import functools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings

from channels_app.services import platform_pause
from notifications_app.delivery.engine import Pass
from notifications_app.delivery.registry import Client, ServiceAccount
from notifications_app.delivery.types import Message, Misconfigured, Outcome, Target
from notifications_app.models import Notification
from notifications_app.pipeline import (
    batches,
    breakers,
    connections,
    fcm_rate,
    outcomes,
    transitions,
)
from notifications_app.pipeline.batches import Lease, LeaseLost, persistently
from notifications_app.pipeline.evidence import (
    Evidence,
    evidence_of,
    is_outage,
    refused_by_many,
    sample,
)
from notifications_app.pipeline.outcomes import RowsRefused
from notifications_app.pipeline.targets import (
    Addressed,
    CredentialsMissing,
    CredentialsUnreadable,
    address,
    message_of,
)
from notifications_app.pipeline.transitions import Limits, Recipient, Verdict
from pushsvc.common import worker
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.store.crypto import SecretUnreadable

logger = logging.getLogger(__name__)

SOLO_LAPSES = 3
_RENEW_SECONDS = 10.0
_UNREADABLE_WAIT = 60.0
_OUTAGE_WAIT = 1.0
_REMEDY = "restore the key in CREDENTIAL_KEYS"
_UNREADABLE = Misconfigured("key_unreadable", "The stored credentials cannot be read.")
Answers = Sequence[tuple[Target, Outcome]]


def deliver(platform: Platform, *, seconds: float) -> bool:
    """Works on due batches of the platform; False when there are none left, True when the time is
    up or the worker is to stop. Safe to run any number of times, anywhere, at once."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not worker.is_stopping():
        lease = batches.claim(
            platform,
            skip=breakers.held(),
            processes=worker.live_processes(platform),
            skip_channels=_channels_over_quota(platform),
        )
        if lease is None:
            return False
        deliver_batch(lease)
    return True


def deliver_batch(lease: Lease) -> None:
    """Takes a claimed batch as far as it goes now, and gives it back if recipients are left."""
    try:
        _Delivery.of(lease).run()
    except LeaseLost:
        logger.warning("batch.lease_lost", extra={"batch": lease.batch_id})
    except CredentialsMissing:
        _end(lease, lambda: batches.park(lease))
    except CredentialsUnreadable as error:
        _end(lease, functools.partial(_pause_and_park, lease, error.version))
    except SecretUnreadable:
        logger.error("credentials.unreadable", extra={"remedy": _REMEDY})
        _end(lease, lambda: batches.hand_back(lease, finished_pass=False, wait=_UNREADABLE_WAIT))
    except Exception:
        _end(lease, lambda: batches.hand_back_failed(lease))
        raise


def _end(lease: Lease, give_back: Callable[[], object]) -> None:
    """Gives back a batch that was not worked on; if the database stays away, it lapses."""

    def give() -> bool:
        give_back()
        return True

    with contextlib.suppress(LeaseLost):
        persistently(give, until=lease.begun + settings.LEASE_SECONDS)


def _pause(lease: Lease, version: int, refusal: Misconfigured) -> bool:
    """Only the version that was refused: new credentials stored meanwhile go on."""
    return platform_pause(
        channel_id=lease.channel_id,
        platform=lease.platform,
        version=version,
        code=refusal.code,
        detail=refusal.detail,
    )


def _pause_and_park(lease: Lease, version: int) -> None:
    _pause(lease, version, _UNREADABLE)
    batches.park(lease)


# (platform, channel) whose project has used up its calls for now, and until when on the monotonic
# clock. Meanwhile their batches are left alone: to read one and hand it back is work too.
_over_quota: dict[tuple[str, UUID], float] = {}


def _channels_over_quota(platform: Platform) -> list[UUID]:
    now = time.monotonic()
    for key in [key for key, until in _over_quota.items() if until <= now]:
        del _over_quota[key]
    return [channel_id for of, channel_id in _over_quota if of == platform]


@dataclass
class _Delivery:
    """One pass of one worker over one batch."""

    lease: Lease
    message: Message
    limits: Limits
    recipients: dict[UUID, Recipient]
    addressed: Addressed
    service_waits: float = 0.0  # seconds for which a breaker of the push service is open
    is_refused: bool = False  # the credentials were
    has_refused_rows: bool = False
    is_probe: bool = False  # of a breaker that is half-open
    probed: list[tuple[Target, Outcome]] = field(default_factory=list)
    outages_in_a_row: int = 0
    leased_until: float = field(init=False)  # on this process's clock

    def __post_init__(self) -> None:
        self.leased_until = self.lease.begun + settings.LEASE_SECONDS

    @classmethod
    def of(cls, lease: Lease) -> "_Delivery":
        notification = Notification.objects.get(pk=lease.notification_id)
        due = sql.rows(_DUE_RECIPIENTS, {"batch": lease.batch_id})
        recipients = [Recipient(*row) for row in due]
        limits = _limits(notification)
        return cls(
            lease=lease,
            message=message_of(notification, expires_at=lease.local(limits.deadline)),
            limits=limits,
            recipients={each.subscription_id: each for each in recipients},
            addressed=address(
                lease.platform,
                lease.channel_id,
                lease.notification_id,
                [each.subscription_id for each in recipients],
            ),
        )

    def run(self) -> None:
        targets = self._write_what_needs_no_call()
        service, channel_id = self.lease.push_service, self.lease.channel_id
        self.is_probe = bool(targets) and breakers.is_half_open(service, channel_id)
        if self.is_probe:
            targets = sample(targets, breakers.PROBE_CALLS, is_first=self._is_first)
        granted, quota_wait = self._within_quota(targets)
        if self.is_probe and granted and not breakers.take_probe(service, channel_id):
            self._give_back(finished_pass=False, wait=1.0)
            return
        call = self._call_one_by_one if self.lease.is_careful else self._call
        is_whole = call(granted) and granted == targets
        if self.is_probe and granted:
            seen = self._evidence(self.probed)
            self.service_waits = breakers.end_probe(service, channel_id, **seen._asdict())
        outage_wait = _OUTAGE_WAIT if self.outages_in_a_row else 0.0
        wait = max(self.service_waits, quota_wait, outage_wait)
        self._give_back(finished_pass=is_whole, wait=wait)

    def _within_quota(self, targets: list[Target]) -> tuple[list[Target], float]:
        """Those that may be called now, and how long the others have to wait."""
        credentials = self.addressed.credentials
        if not targets or not isinstance(credentials, ServiceAccount):
            return targets, 0.0
        grant = fcm_rate.take(self.lease.channel_id, credentials, len(targets))
        if grant.wait_seconds:
            key = (self.lease.platform, self.lease.channel_id)
            _over_quota[key] = time.monotonic() + grant.wait_seconds
        return targets[: grant.granted], grant.wait_seconds

    def _give_back(self, *, finished_pass: bool, wait: float) -> None:
        """Parked where the credentials were refused; if others were stored meanwhile, the next
        tick makes it ready again."""

        def give() -> bool:
            if self.is_refused:
                batches.park(self.lease)
            elif self.has_refused_rows:
                batches.hand_back_failed(self.lease, careful=True)
            else:
                batches.hand_back(self.lease, finished_pass=finished_pass, wait=wait)
            return True

        persistently(give, until=self.leased_until)

    def _write_what_needs_no_call(self) -> list[Target]:
        """Bounces who left, whose time is over, and who broke worker after worker alone."""
        bounces, targets = [], []
        now = self.lease.now()
        for recipient in self.recipients.values():
            target = self.addressed.targets.get(recipient.subscription_id)
            if target is None:
                bounces.append(transitions.bounce(recipient, transitions.UNSUBSCRIBED))
            elif transitions.out_of_time(recipient, now=now, limits=self.limits):
                bounces.append(transitions.bounce(recipient, transitions.EXPIRED))
            elif recipient.solo_attempts >= SOLO_LAPSES:
                bounces.append(transitions.bounce(recipient, transitions.INTERNAL_ERROR))
            else:
                targets.append(target)
        if bounces:
            self._write(bounces)
        return targets

    def _call_one_by_one(self, targets: Sequence[Target]) -> bool:
        """Each attempt is noted before the call, so that who breaks a worker is known by name."""
        for target in targets:
            if not self._may_start():
                return False
            if self._begin_alone(target) and not self._call([target]):
                return False
        return True

    def _begin_alone(self, target: Target) -> bool:
        """False where the outcome could not be written, so that nobody is called without end."""
        subscription_id = target.subscription_id
        try:
            noted = persistently(
                lambda: outcomes.begin_alone(self.lease, subscription_id), until=self.leased_until
            )
        except RowsRefused:
            self.has_refused_rows = True
            return False
        if not noted:
            raise LeaseLost
        return True

    def _call(self, targets: Sequence[Target]) -> bool:
        """Calls for all targets, writing outcomes as they come; True if all were called."""
        client = connections.client(self.lease.platform)
        calls = Pass(
            connections.engine(),
            lambda target: self._send(client, target),
            targets,
            may_start=self._may_start,
            most_in_flight=self._at_once(settings.CALLS_IN_FLIGHT),
            most_unwritten=self._at_once(settings.UNWRITTEN_OUTCOMES),
        )
        try:
            while not calls.is_over:
                answers = calls.collect(
                    most=settings.FLUSH_OUTCOMES, seconds=settings.FLUSH_SECONDS
                )
                self._take(answers)
                calls.written(len(answers))
        finally:
            calls.stop()
        return calls.is_whole

    def _at_once(self, most: int) -> int:
        """An eighth after each lapse: should a recipient have ended the worker before, as few as
        may be are under way with it the next time, and sent again."""
        return max(1, most >> 3 * self.lease.lapses)

    async def _send(self, client: Client, target: Target) -> Outcome:
        """In the engine's thread."""
        outcome = await client.send(self.message, target, self.addressed.credentials)
        self.outages_in_a_row = self.outages_in_a_row + 1 if is_outage(outcome) else 0
        return outcome

    def _may_start(self) -> bool:
        """Called from the engine's thread, before each call."""
        now = time.monotonic()
        is_stranger = self.lease.push_service == breakers.STRANGERS
        seconds = settings.STRANGER_BATCH_SECONDS if is_stranger else settings.BATCH_SECONDS
        return (
            now + settings.CALL_SECONDS < self.leased_until
            and now < self.lease.begun + seconds
            and not self.service_waits
            and self.outages_in_a_row < breakers.LEAST_CALLS
            and not self.is_refused
            and not worker.is_stopping()
        )

    def _take(self, answers: Answers) -> None:
        if not answers:
            self._renew()
            return
        for _, outcome in answers:
            if isinstance(outcome, Misconfigured) and not self.is_refused:
                self._pause(outcome)
        self._write([self._judge(target.subscription_id, outcome) for target, outcome in answers])
        self._tell_breaker(answers)
        self._tell_rate(answers)
        self._warn_of_refused_keys(answers)

    def _judge(self, subscription_id: UUID, outcome: Outcome) -> Verdict:
        """An outcome that cannot be judged must not cost the others theirs: what is not written is
        sent again."""
        recipient = self.recipients[subscription_id]
        try:
            return transitions.judge(
                recipient,
                outcome,
                registered_at=self.addressed.registered_at[subscription_id],
                now=self.lease.now(),
                limits=self.limits,
                is_unproven=subscription_id in self.addressed.unproven,
            )
        except Exception as error:  # noqa: BLE001 (a fault of ours, whatever it is)
            logger.error("delivery.internal_error", extra={"error": type(error).__name__})
            return transitions.bounce(recipient, transitions.INTERNAL_ERROR, attempts=1)

    def _write(self, judged: Sequence[Verdict]) -> None:
        """Writes until it succeeds or the lease is over: an outcome that is lost is sent again."""
        begun = time.monotonic()
        try:
            persistently(lambda: outcomes.record(self.lease, judged), until=self.leased_until)
        except RowsRefused:  # perhaps nothing was written, and the lease is as old as it was
            self.has_refused_rows = True
            return
        self.leased_until = begun + settings.LEASE_SECONDS

    def _renew(self) -> None:
        begun = time.monotonic()
        if begun < self.leased_until - settings.LEASE_SECONDS + _RENEW_SECONDS:
            return
        if not persistently(lambda: batches.renew(self.lease), until=self.leased_until):
            raise LeaseLost
        self.leased_until = begun + settings.LEASE_SECONDS

    def _pause(self, refusal: Misconfigured) -> None:
        self.is_refused = True
        version = self.addressed.credential_version
        persistently(lambda: _pause(self.lease, version, refusal), until=self.leased_until)

    def _tell_breaker(self, answers: Answers) -> None:
        if self.is_probe:  # judged as a whole: its first answers may be those that fail fast
            self.probed += answers
            return
        lease, seen = self.lease, self._evidence(answers)
        waits = breakers.record(lease.push_service, lease.channel_id, **seen._asdict())
        self.service_waits = max(self.service_waits, waits)

    def _evidence(self, answers: Answers) -> Evidence:
        return evidence_of(
            answers,
            service=self.lease.push_service,
            trusted_origins=settings.WEBPUSH_TRUSTED_ORIGINS,
            is_first=self._is_first,
        )

    def _is_first(self, target: Target) -> bool:
        return not self.recipients[target.subscription_id].attempts

    def _tell_rate(self, answers: Answers) -> None:
        credentials = self.addressed.credentials
        if isinstance(credentials, ServiceAccount):
            fcm_rate.learn(self.lease.channel_id, credentials, (outcome for _, outcome in answers))

    def _warn_of_refused_keys(self, answers: Answers) -> None:
        for event, refused in refused_by_many(outcome for _, outcome in answers):
            extra = {"channel": self.lease.channel_id, "refused": refused, "of": len(answers)}
            logger.warning(event, extra=extra)


def _limits(notification: Notification) -> Limits:
    if notification.deadline_at is None:
        raise ValueError("a notification that was not started has no limits")
    return Limits(
        deadline=notification.deadline_at,
        attempts=settings.HAND_OVER_ATTEMPTS if notification.ttl else 1,
        seconds=settings.HAND_OVER_SECONDS,
    )


# Those tried least come first, so that one that breaks workers, or fails again and again where few
# may be called, does not hold up the others.
_DUE_RECIPIENTS = """
SELECT subscription_id, attempts, first_attempt_at, solo_attempts
FROM notifications_app_delivery
WHERE batch_id = %(batch)s AND status = 0
  AND (due_at IS NULL OR due_at <= statement_timestamp())
ORDER BY solo_attempts, attempts, subscription_id
"""
