"""Makes the calls of one pass in the event loop, and decides when to make no more.

A refusal of the credentials is confirmed by a second call before it counts: push services refuse
good credentials now and then.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog
from django.conf import settings

from notifications_app.delivery.registry import Client
from notifications_app.delivery.types import Deferred, Misconfigured, Outcome, is_throttled
from notifications_app.pipeline import breakers, connections, metering, web_rate
from notifications_app.pipeline.evidence import LEAST_RECENT, MOST_RECENT, is_outage
from notifications_app.pipeline.lease import Lease
from notifications_app.pipeline.reading import PassRead, Recipient
from pushsvc.common import worker

logger = structlog.stdlib.get_logger(__name__)

# How long a confirmation that did not confirm counts for the other refusals of the pass, most of
# which were in flight with the first. So a pass makes few confirmations, however many are refused.
_UNCONFIRMED_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 2.0  # more than a client needs to close


class Caller:
    """Only the event loop may use it while calls are made, and to call what `counting` returns.
    Before and after, the task's thread may use it."""

    def __init__(
        self, client: Client, work: PassRead, lease: Lease, standing: web_rate.Standing
    ) -> None:
        """`lease`: any lease of the pass, because all begin and end together."""
        self._client = client
        self._credentials = work.credentials
        self._lease = lease
        self._last_call_at = lease.begun + settings.LEASE_SECONDS - settings.CALL_SECONDS
        self._outages_in_a_row = 0
        self._confirmation: asyncio.Task[Outcome] | None = None
        self._are_refused = False
        self._unconfirmed_until = 0.0
        self._is_rated = web_rate.is_rated(lease.platform, lease.push_service)
        self._is_limited = standing.is_limited
        self._throttled: deque[bool] = deque(maxlen=MOST_RECENT)
        self._call_seconds: list[float] = []
        self._sent_before = client.sent_bytes

    async def call(self, recipient: Recipient) -> Outcome:
        """Makes one attempt. Misconfigured only if a second call confirmed it."""
        outcome = await self._timed(self._client, recipient)
        if isinstance(outcome, Misconfigured) and outcome.was_called:
            outcome = await self._confirmed(recipient, outcome)
        self._outages_in_a_row = self._outages_in_a_row + 1 if is_outage(outcome) else 0
        if self._is_rated:
            self._note(recipient, was_throttled=is_throttled(outcome))
        return outcome

    async def _timed(self, client: Client, recipient: Recipient) -> Outcome:
        began = time.monotonic()
        outcome = await client.send(recipient.message, recipient.destination, self._credentials)
        self._call_seconds.append(time.monotonic() - began)
        return outcome

    async def _confirmed(self, recipient: Recipient, refusal: Misconfigured) -> Outcome:
        """The refusal if a second call confirms it. Otherwise the outcome of the second call, for
        the recipient that it was made for; the others are tried again later."""
        if self._confirmation is not None:
            await asyncio.wait([self._confirmation])
        elif self._may_confirm(recipient):
            self._confirmation = asyncio.create_task(self._called_again(recipient))
            try:
                return await self._confirmation
            finally:
                self._confirmation = None
        return refusal if self._are_refused else Deferred(refusal.code, refusal.detail)

    def _may_confirm(self, recipient: Recipient) -> bool:
        now = time.monotonic()
        is_needed = not self._are_refused and now >= self._unconfirmed_until
        has_time = self._has_time(now + _CLOSE_SECONDS)
        return is_needed and has_time and self.may_start(recipient)

    async def _called_again(self, recipient: Recipient) -> Outcome:
        """The same call by a new client: over another connection, with a new access token for FCM.
        A provider token for APNs stays the same, because Apple allows no new one for 20 minutes."""
        client = connections.new_client(self._lease.platform)
        try:
            outcome = await self._timed(client, recipient)
        finally:
            await client.close()
        self._client.sent_bytes += client.sent_bytes
        self._are_refused = isinstance(outcome, Misconfigured)
        if not self._are_refused:
            self._unconfirmed_until = time.monotonic() + _UNCONFIRMED_SECONDS
            self._client.renew(self._credentials)
            logger.warning("credentials.refused_once", platform=self._lease.platform)
        return outcome

    def _note(self, recipient: Recipient, *, was_throttled: bool) -> None:
        """As `evidence.throttling_of` counts."""
        if self._is_limited or recipient.is_first_attempt or not was_throttled:
            self._throttled.append(was_throttled)

    def must_wait(self) -> bool:
        """Whether calls wait because a refusal of the credentials is being confirmed."""
        return self._confirmation is not None

    def may_go_on(self) -> bool:
        """Whether further calls may start: time is left, the worker is not stopping, the last calls
        were not all outages, less than half of them throttled, and the credentials not refused.
        Renewals give no more time, because a pass ends before its first lease does."""
        now = time.monotonic()
        return (
            self._has_time(now)
            and not self._are_refused
            and now < self._lease.begun + self._pass_seconds()
            and self._outages_in_a_row < breakers.LEAST_CALLS
            and not self.is_throttled
            and not worker.is_stopping()
        )

    def _has_time(self, now: float) -> bool:
        """Whether a call that begins now ends within the lease."""
        return now < self._last_call_at

    def may_start(self, recipient: Recipient) -> bool:
        """Whether the recipient's deadline is not over, and its quiet hours have not begun. Batches
        of a pass may have different deadlines."""
        return time.monotonic() < min(recipient.message.expires_at, recipient.quiet_at)

    def counting(self) -> Callable[[], None]:
        """Returns a function that adds the calls to the metrics. Call it when they have ended. Each
        call is only noted, because adding takes longer. The bytes are read at once, because later
        calls of the process add to the same sum."""
        size = self._client.sent_bytes - self._sent_before
        self._sent_before += size

        def count() -> None:
            metering.called(self._lease, self._call_seconds, size=size)
            self._call_seconds = []

        return count

    @property
    def ended_with_outage(self) -> bool:
        return self._outages_in_a_row > 0

    @property
    def is_throttled(self) -> bool:
        """Whether the push service throttled half of the last calls. Processes learn a limit
        together, but each stops by itself, before many calls are in vain."""
        seen = len(self._throttled)
        return seen >= LEAST_RECENT and 2 * sum(self._throttled) >= seen

    def _pass_seconds(self) -> float:
        is_unknown_host = self._lease.push_service == breakers.UNKNOWN_HOSTS
        return settings.UNKNOWN_HOST_BATCH_SECONDS if is_unknown_host else settings.BATCH_SECONDS
