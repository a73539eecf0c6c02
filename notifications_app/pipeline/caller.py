"""Makes the calls of one pass in the event loop, and decides when to make no more."""

import time
from collections.abc import Callable

from django.conf import settings

from notifications_app.delivery.registry import Client
from notifications_app.delivery.types import Outcome
from notifications_app.pipeline import breakers, metering
from notifications_app.pipeline.evidence import is_outage
from notifications_app.pipeline.lease import Lease
from notifications_app.pipeline.reading import PassRead, Recipient
from pushsvc.common import worker


class Caller:
    """Only the event loop may use it while calls are made; the task's thread then schedules
    `extend` and what `counting` returns in the loop. Before and after, the task's thread may use
    it."""

    def __init__(self, client: Client, work: PassRead, lease: Lease) -> None:
        """`lease`: any lease of the pass, because all begin and end together."""
        self._client = client
        self._credentials = work.credentials
        self._lease = lease
        self._leased_until = lease.begun + settings.LEASE_SECONDS
        self._outages_in_a_row = 0
        self._call_seconds: list[float] = []
        self._sent_before = client.sent_bytes

    async def call(self, recipient: Recipient) -> Outcome:
        began = time.monotonic()
        outcome = await self._client.send(recipient.message, recipient.target, self._credentials)
        self._call_seconds.append(time.monotonic() - began)
        self._outages_in_a_row = self._outages_in_a_row + 1 if is_outage(outcome) else 0
        return outcome

    def may_go_on(self) -> bool:
        """Whether further calls may start: time is left, the worker is not stopping, and the last
        calls were not all outages."""
        now = time.monotonic()
        return (
            now + settings.CALL_SECONDS < self._leased_until
            and now < self._lease.begun + self._pass_seconds()
            and self._outages_in_a_row < breakers.LEAST_CALLS
            and not worker.is_stopping()
        )

    def may_start(self, recipient: Recipient) -> bool:
        """Whether the recipient's deadline is not over. Batches of a pass may have different
        deadlines."""
        return time.monotonic() < recipient.message.expires_at

    def extend(self, leased_until: float) -> None:
        """To be called after a renewal. `leased_until` is on the monotonic clock."""
        self._leased_until = leased_until

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

    def _pass_seconds(self) -> float:
        is_unknown_host = self._lease.push_service == breakers.UNKNOWN_HOSTS
        return settings.UNKNOWN_HOST_BATCH_SECONDS if is_unknown_host else settings.BATCH_SECONDS
