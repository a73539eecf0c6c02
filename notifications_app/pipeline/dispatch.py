"""Takes a worker through batches: claim → read → calls → outcomes, which are written as they come.

A worker that dies repeats only the calls that were in flight or whose outcome was not yet written.
Its parts: `lease` holds the batch, `caller` lives in the event loop, `recording` writes.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from django.conf import settings

from notifications_app.delivery.engine import Pass
from notifications_app.delivery.registry import ServiceAccount
from notifications_app.delivery.types import Misconfigured, Target
from notifications_app.pipeline import batches, breakers, connections, fcm_rate
from notifications_app.pipeline.caller import Caller
from notifications_app.pipeline.evidence import sample
from notifications_app.pipeline.lease import HeldLease, Lease, LeaseLost
from notifications_app.pipeline.reading import BatchRead, Halted, read
from notifications_app.pipeline.recording import Recorder, pause
from notifications_app.pipeline.targets import CredentialsMissing, CredentialsUnreadable
from pushsvc.common import worker
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import SecretUnreadable

logger = logging.getLogger(__name__)

_UNREADABLE_WAIT = 60.0
_OUTAGE_WAIT = 1.0
_HALTED_WAIT = 1.0
_LONGEST_COLLECTING = 2.0
_REMEDY = "restore the key in CREDENTIAL_KEYS"
_UNREADABLE = Misconfigured("key_unreadable", "The stored credentials cannot be read.")


def deliver(platform: Platform, *, seconds: float) -> bool:
    """Serves due batches of the platform. False when none is left, True when the time is over or
    the worker is to stop. Safe to run any number of times, anywhere, at once."""
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
    """Serves a claimed batch as far as it goes now, and gives it back if recipients are left. If
    the database stays away, the lease is lost."""
    held = HeldLease(lease)
    try:
        _BatchPass(held, read(lease)).run()
    except LeaseLost:
        logger.warning("batch.lease_lost", extra={"batch": lease.batch_id})
    except Halted:
        # A planner of a version before pauses may have planned it: then the plan is not halted.
        with suppress(LeaseLost):
            held.hand_back(finished_pass=False, wait=_HALTED_WAIT)
    except CredentialsMissing:
        with suppress(LeaseLost):
            held.park()
    except CredentialsUnreadable as error:
        version = error.version
        with suppress(LeaseLost):
            held.persistently(lambda: pause(lease, version, _UNREADABLE))
            held.park()
    except SecretUnreadable:
        logger.error("credentials.unreadable", extra={"remedy": _REMEDY})
        with suppress(LeaseLost):
            held.hand_back(finished_pass=False, wait=_UNREADABLE_WAIT)
    except Exception:
        with suppress(LeaseLost):
            held.hand_back_failed()
        raise


# (platform, channel) whose project has used up its calls for now, and until when on the monotonic
# clock. Their batches are not claimed meanwhile, because reading one and handing it back is work.
_over_quota: dict[tuple[str, UUID], float] = {}


def _channels_over_quota(platform: Platform) -> list[UUID]:
    now = time.monotonic()
    for key in [key for key, until in _over_quota.items() if until <= now]:
        del _over_quota[key]
    return [channel_id for of, channel_id in _over_quota if of == platform]


class _BatchPass:
    """One pass of a worker over a batch, from what was read to handing back."""

    def __init__(self, held: HeldLease, batch: BatchRead) -> None:
        self._held = held
        self._lease = held.lease
        self._batch = batch
        self._recorder = Recorder(held, batch)
        self._caller = Caller(connections.client(self._lease.platform), batch, self._lease)

    def run(self) -> None:
        targets = self._recorder.callable_targets()
        if self._recorder.must_stop:
            self._give_back(finished_pass=False, wait=0.0)
            return
        self._call_callable(targets)

    def _call_callable(self, targets: list[Target]) -> None:
        is_probe = bool(targets) and breakers.is_half_open(*self._breaker)
        if is_probe:
            targets = sample(targets, breakers.PROBE_CALLS, is_first=self._is_first)
        granted, quota_wait = self._within_quota(targets)
        if is_probe and granted:
            if not breakers.take_probe(*self._breaker):
                self._give_back(finished_pass=False, wait=1.0)
                return
            self._recorder.begin_probe()
        call = self._call_one_by_one if self._lease.is_careful else self._call
        is_whole = call(granted) and granted == targets
        if is_probe and granted:
            self._recorder.end_probe()
        outage_wait = _OUTAGE_WAIT if self._caller.ended_with_outage else 0.0
        wait = max(self._recorder.service_waits, quota_wait, outage_wait)
        self._give_back(finished_pass=is_whole, wait=wait)

    @property
    def _breaker(self) -> tuple[str, UUID]:
        return self._lease.push_service, self._lease.channel_id

    def _is_first(self, target: Target) -> bool:
        return not self._batch.due[target.subscription_id].attempts

    def _within_quota(self, targets: list[Target]) -> tuple[list[Target], float]:
        """The targets that may be called now, and how many seconds the others have to wait."""
        credentials = self._batch.targets.credentials
        if not targets or not isinstance(credentials, ServiceAccount):
            return targets, 0.0
        grant = fcm_rate.take(self._lease.channel_id, credentials, len(targets))
        if grant.wait_seconds:
            key = (self._lease.platform, self._lease.channel_id)
            _over_quota[key] = time.monotonic() + grant.wait_seconds
        return targets[: grant.granted], grant.wait_seconds

    def _give_back(self, *, finished_pass: bool, wait: float) -> None:
        """Parks the batch if the credentials were refused. If others were stored meanwhile, the
        next tick makes it ready again."""
        if self._recorder.is_refused:
            self._held.park()
        elif self._recorder.has_refused_rows:
            self._held.hand_back_failed(careful=True)
        else:
            self._held.hand_back(finished_pass=finished_pass, wait=wait)

    def _call_one_by_one(self, targets: Sequence[Target]) -> bool:
        """Notes each attempt before its call, to know which recipient crashes workers."""
        for target in targets:
            if self._recorder.must_stop or not self._caller.may_start():
                return False
            if self._recorder.begin_alone(target) and not self._call([target]):
                return False
        return True

    def _call(self, targets: Sequence[Target]) -> bool:
        """Calls all targets and writes their outcomes as they come; True if all were called."""
        engine = connections.engine()
        most_unwritten = self._at_once(settings.UNWRITTEN_OUTCOMES)
        most = min(settings.FLUSH_OUTCOMES, most_unwritten)  # or a full window would wait in vain
        calls = Pass(
            engine,
            self._caller.call,
            targets,
            may_start=self._caller.may_start,
            most_in_flight=self._at_once(settings.CALLS_IN_FLIGHT),
            most_unwritten=most_unwritten,
        )
        flush_seconds = 0.0
        try:
            while not calls.is_over:
                answers = calls.collect(most=most, seconds=_collect_seconds(flush_seconds))
                began = time.monotonic()
                self._recorder.take(answers)
                flush_seconds = time.monotonic() - began
                if self._recorder.must_stop:
                    calls.stop()
                engine.loop.call_soon_threadsafe(self._caller.extend, self._held.until)
                calls.written(len(answers))
        finally:
            calls.stop()
        return calls.is_whole

    def _at_once(self, most: int) -> int:
        """An eighth for each lease loss: if a recipient crashed the worker, fewer others are in
        flight beside it the next time, and sent to again."""
        return max(1, most >> 3 * self._lease.lease_losses)


def _collect_seconds(flush_seconds: float) -> float:
    """How long to collect outcomes for a flush, if the last one took so long. While the database is
    slow, fewer and larger flushes cost it less. Calls go on meanwhile."""
    slow = min(2 * flush_seconds, _LONGEST_COLLECTING)
    return max(settings.FLUSH_SECONDS, slow)
