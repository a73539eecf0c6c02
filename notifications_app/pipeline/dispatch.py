"""Serves batches: claims them, reads their recipients, makes the calls, writes the outcomes.

A claim is one batch, or several small batches of one channel at one push service, which are served
in one pass.

If a worker dies, only calls that were in flight or whose outcome was not yet written are repeated.
`lease` holds the batches, `caller` runs in the event loop, `recording` writes the outcomes.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import connection
from structlog.contextvars import bound_contextvars

from notifications_app.delivery.event_loop import Calls
from notifications_app.delivery.registry import ServiceAccount
from notifications_app.delivery.types import Misconfigured, Outcome
from notifications_app.pipeline import (
    batches,
    breakers,
    connections,
    fcm_rate,
    outcomes,
    send_rates,
    web_rate,
)
from notifications_app.pipeline.caller import Caller
from notifications_app.pipeline.destinations import CredentialsMissing, CredentialsUnreadable
from notifications_app.pipeline.evidence import sample
from notifications_app.pipeline.lease import HeldLeases, Lease, LeaseLost
from notifications_app.pipeline.reading import Halted, PassRead, Recipient, read, read_quiet
from notifications_app.pipeline.recording import Recorder, pause
from pushsvc.common import worker
from pushsvc.common.correlation import Correlation, following, named
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import SecretUnreadable
from pushsvc.common.store.redis_client import redis_client
from pushsvc.common.telemetry import spans

logger = structlog.stdlib.get_logger(__name__)

_UNREADABLE_WAIT = 60.0
_OUTAGE_WAIT = 1.0
_LONGEST_COLLECTING = 2.0
_REMEDY = "restore the key in CREDENTIAL_KEYS"
_UNREADABLE = Misconfigured("key_unreadable", "The stored credentials cannot be read.")


def deliver(platform: Platform, *, seconds: float, pace: worker.Pace | None = None) -> bool:
    """Serves due batches of the platform. Returns False if none is left, and True if the time is
    up or the worker must stop. Any number of workers may run it at once. `pace` receives the
    number of claimed batches."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not worker.is_stopping():
        held, processes = _held_and_processes(platform)
        leases = batches.claim(
            platform,
            most=settings.CLAIM_BATCHES,
            skip=held,
            processes=processes,
            skip_channels=_channels_over_quota(platform),
        )
        if not leases:
            return False
        if pace:
            pace.found(len(leases))
        are_done = deliver_batches(leases)
        if are_done and leases[0].leaves_none and time.monotonic() < until:
            return False  # for later batches, the planner sends a wakeup
    return True


def _held_and_processes(platform: Platform) -> tuple[list[str], int]:
    """What `breakers.held` and `live_processes` return, in one round trip to Redis."""
    calls = breakers.held_call(web_rate.HELD), worker.live_call(platform)
    try:
        held, nodes = redis_client().run(*calls)
    except redis.RedisError:
        return [], 0
    return list(held), worker.live(nodes)


def deliver_batches(leases: Sequence[Lease]) -> bool:
    """Serves the batches of a claim, and hands back those that have recipients left. If the
    database stays away, the leases are lost. Returns whether no recipients are left."""
    about = {
        **named("batch", "batches", [lease.batch_id for lease in leases]),
        **named("notification", "notifications", {lease.notification_id for lease in leases}),
    }
    with bound_contextvars(channel=leases[0].channel_id, **about):
        held = HeldLeases(leases)
        _serve(held)
        return held.are_done


def _serve(held: HeldLeases) -> None:
    leases = held.open
    try:
        # An error that leaves the connection usable would come again.
        work = held.persistently(
            lambda: read(leases), may_repeat=lambda: not connection.is_usable()
        )
        with _following(leases, work):
            _log_begin(leases[0], work)
            _Pass(held, work).run()
    except LeaseLost:
        held.log_loss()
    except Halted:
        with suppress(LeaseLost):
            held.hand_back(finished_pass=False)
    except CredentialsMissing:
        with suppress(LeaseLost):
            _set_aside(held)
    except CredentialsUnreadable as error:
        version = error.version
        with suppress(LeaseLost):
            held.persistently(lambda: pause(leases[0], version, _UNREADABLE))
            _set_aside(held)
    except SecretUnreadable:
        logger.error("credentials.unreadable", remedy=_REMEDY)
        with suppress(LeaseLost):
            held.hand_back(finished_pass=False, wait=_UNREADABLE_WAIT)
    except Exception:
        with suppress(LeaseLost):
            held.hand_back_failed()
        raise


def _set_aside(held: HeldLeases) -> None:
    """Parks the batches. Recipients that have quiet hours wait for their end, as with credentials:
    a batch that has no others is handed back, so that its hour does not begin at night."""
    try:
        postponed, others = held.persistently(lambda: read_quiet(held.open))
    except Halted:
        held.hand_back(finished_pass=False)
        return
    if postponed:
        held.write_and_renew(lambda leases: outcomes.record(leases, postponed))
    held.split({lease.batch_id for lease in held.open} - others).hand_back(finished_pass=False)
    held.park()


def try_parked(lease: Lease, ends_pause: Callable[[Outcome | None], bool]) -> None:
    """Calls one recipient of a parked batch with the credentials that were refused, and records the
    outcome. The batch is handed back if `ends_pause` returns True, else parked again. It gets the
    outcome of the call, or None if there was no recipient to call. Raises Halted, and what
    `read_destinations` raises if the credentials cannot be used."""
    held = HeldLeases([lease])
    try:
        work = held.persistently(
            lambda: read([lease], even_paused=True), may_repeat=lambda: not connection.is_usable()
        )
        with _following([lease], work):
            outcome = _Pass(held, work).call_one()
        if ends_pause(outcome):
            held.hand_back(finished_pass=False)
        else:
            held.park()
    except LeaseLost:
        held.log_loss()
    except Exception:
        with suppress(LeaseLost):
            held.park()
        raise


@contextmanager
def _following(leases: Sequence[Lease], work: PassRead) -> Iterator[None]:
    """Opens a span for each batch in its notification's trace. If all batches are of one
    notification, log lines and flushes follow its correlation."""
    with ExitStack() as stack:
        begun = [stack.enter_context(_batch_span(each, work)) for each in leases]
        is_one = len(set(work.correlations.values())) == 1
        stack.enter_context(following(begun[0].correlation if is_one else Correlation()))
        yield


def _batch_span(lease: Lease, work: PassRead) -> AbstractContextManager[spans.Span]:
    return spans.span(
        "deliver batch",
        work.correlations[lease.batch_id],
        notification=lease.notification_id,
        channel=lease.channel_id,
        platform=lease.platform,
        push_service=lease.push_service,
        batch=lease.batch_id,
        lease_number=lease.number,
    )


def _log_begin(lease: Lease, work: PassRead) -> None:
    logger.info(
        "batches.begun",
        platform=lease.platform,
        push_service=lease.push_service,
        recipients=len(work.recipients),
        withdrawn=len(work.withdrawn),
    )


# (platform, channel) whose FCM project has no calls left for now, and until when on the monotonic
# clock. Until then their batches are not claimed, because reading and handing back costs work.
_over_quota: dict[tuple[str, UUID], float] = {}


def _channels_over_quota(platform: Platform) -> list[UUID]:
    now = time.monotonic()
    for key in [key for key, until in _over_quota.items() if until <= now]:
        del _over_quota[key]
    return [channel_id for of, channel_id in _over_quota if of == platform]


class _Pass:
    """One pass of a worker over the batches of a claim, after the read and until they are handed
    back."""

    def __init__(self, held: HeldLeases, work: PassRead) -> None:
        self._held = held
        self._lease = held.open[0]  # any: they share channel, platform, push service and clock
        self._credentials = work.credentials
        self._standing = self._read_standing(len(work.recipients))
        self._recorder = Recorder(held, work, self._standing)
        client = connections.client(self._lease.platform)
        self._caller = Caller(client, work, self._lease, self._standing)

    def run(self) -> None:
        recipients = self._recorder.callable_recipients()
        if self._recorder.must_stop:
            self._hand_back(finished_pass=False, wait=0.0)
            return
        self._call_callable(recipients)

    def call_one(self) -> Outcome | None:
        """Calls one of the recipients, and keeps the batch. Returns the outcome, or None without a
        call. Chosen at random, so that no device can always be the one that is tried."""
        recipients = self._recorder.callable_recipients()
        if recipients and not self._recorder.must_stop:
            one = [random.choice(recipients)]  # noqa: S311 (guards nothing)
            call = self._call_one_by_one if self._lease.is_careful else self._call
            call(one)
        return self._recorder.last_outcome

    def _call_callable(self, recipients: list[Recipient]) -> None:
        is_probe = bool(recipients) and self._standing.is_half_open
        chosen = sample(recipients, breakers.PROBE_CALLS) if is_probe else recipients
        granted, quota_wait = self._within_quota(chosen)
        self._charge(len(granted) - self._lease.charged)
        if is_probe and granted:
            if not breakers.take_probe(*self._breaker):
                self._hand_back(finished_pass=False, wait=1.0)
                return
            self._recorder.begin_probe()
        call = self._call_one_by_one if self._lease.is_careful else self._call
        is_whole = call(granted) and len(granted) == len(recipients)
        if self._recorder.is_trial_accepted:
            called = {each.delivery for each in granted}
            others = [each for each in recipients if each.delivery not in called]
            self._charge(len(others))
            is_whole = call(others)
            quota_wait = 0.0
        if is_probe and granted:
            self._recorder.end_probe()
        outage_wait = _OUTAGE_WAIT if self._caller.ended_with_outage else 0.0
        throttled_wait = web_rate.TURN_SECONDS if self._caller.is_throttled else 0.0
        wait = max(self._recorder.service_waits, quota_wait, outage_wait, throttled_wait)
        self._hand_back(finished_pass=is_whole, wait=wait)

    def _charge(self, recipients: int) -> None:
        """Corrects what the claim took from the rate of the send, before the calls."""
        if self._lease.charged and recipients:
            send_rates.charge(self._lease.notification_id, recipients)

    @property
    def _breaker(self) -> tuple[str, UUID]:
        return self._lease.push_service, self._lease.channel_id

    def _read_standing(self, wanted: int) -> web_rate.Standing:
        """What the pass may do, in one round trip to Redis."""
        if not wanted:
            return web_rate.Standing()
        if web_rate.is_rated(self._lease.platform, self._lease.push_service):
            return web_rate.begin(*self._breaker, wanted)
        return web_rate.Standing(breakers.is_half_open(*self._breaker))

    def _within_quota(self, recipients: Sequence[Recipient]) -> tuple[Sequence[Recipient], float]:
        """The recipients that may be called now, and how many seconds the others must wait."""
        if self._standing.most is not None:
            return self._standing.chosen(recipients), self._standing.wait_seconds
        if not recipients or not isinstance(self._credentials, ServiceAccount):
            return recipients, 0.0
        grant = fcm_rate.take(self._lease.channel_id, self._credentials, len(recipients))
        if grant.wait_seconds:
            key = (self._lease.platform, self._lease.channel_id)
            _over_quota[key] = time.monotonic() + grant.wait_seconds
        return recipients[: grant.granted], grant.wait_seconds

    def _hand_back(self, *, finished_pass: bool, wait: float) -> None:
        """Parks the batches if the credentials were refused; hands them back otherwise. If new
        credentials were stored meanwhile, the next tick makes parked batches ready."""
        if self._recorder.are_credentials_refused:
            self._held.park()
            return
        self._held.split(self._recorder.with_refused_rows).hand_back_failed(careful=True)
        self._held.hand_back(finished_pass=finished_pass, wait=wait)

    def _call_one_by_one(self, recipients: Sequence[Recipient]) -> bool:
        """Calls one recipient at a time and records each attempt before its call, to find the
        recipient that crashes workers. Returns True if all were called."""
        are_all_called = True
        for recipient in recipients:
            if self._recorder.must_stop or not self._caller.may_go_on():
                return False
            if not self._caller.may_start(recipient):
                are_all_called = False
                continue
            if self._recorder.begin_alone(recipient) and not self._call([recipient]):
                return False
        return are_all_called

    def _call(self, recipients: Sequence[Recipient]) -> bool:
        """Calls the recipients and writes outcomes as they arrive. Returns True if all were
        called."""
        most_unwritten = self._at_once(settings.UNWRITTEN_OUTCOMES)
        most = min(settings.FLUSH_OUTCOMES, most_unwritten)  # a larger flush could never fill
        calls = Calls(
            connections.event_loop(),
            self._caller.call,
            recipients,
            may_go_on=self._caller.may_go_on,
            may_start=self._caller.may_start,
            must_wait=self._caller.must_wait,
            most_in_flight=self._at_once(settings.CALLS_IN_FLIGHT),
            most_unwritten=most_unwritten,
        )
        flush_seconds = 0.0
        try:
            while not calls.is_over:
                results = calls.collect(most=most, seconds=_collect_seconds(flush_seconds))
                began = time.monotonic()
                self._recorder.take(results)
                flush_seconds = time.monotonic() - began
                if self._recorder.must_stop:
                    calls.stop()
                calls.written(len(results))
        finally:
            calls.stop()
            calls.when_over(self._caller.counting())
        return calls.is_whole

    def _at_once(self, most: int) -> int:
        """`most`, divided by eight for each lease loss. If a recipient crashed the worker, fewer
        others are in flight with it the next time, so fewer calls are repeated."""
        return max(1, most >> 3 * self._lease.lease_losses)


def _collect_seconds(flush_seconds: float) -> float:
    """How long to collect outcomes for the next flush. `flush_seconds`: how long the last one took.
    While the database is slow, fewer and larger flushes cost it less. Calls continue meanwhile."""
    slow = min(2 * flush_seconds, _LONGEST_COLLECTING)
    return max(settings.FLUSH_SECONDS, slow)
