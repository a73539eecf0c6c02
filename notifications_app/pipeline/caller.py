"""Makes a worker's calls of one pass, in the event loop, and says when to make no more."""

import time

from django.conf import settings

from notifications_app.delivery.registry import Client
from notifications_app.delivery.types import Outcome
from notifications_app.pipeline import breakers, metering
from notifications_app.pipeline.evidence import is_outage
from notifications_app.pipeline.lease import Lease
from notifications_app.pipeline.reading import PassRead, Recipient
from pushsvc.common import worker


class Caller:
    """Belongs to the event loop while calls are made: the task's thread then only schedules
    `extend` and `count` there. Before and after, the task's thread may use it."""

    def __init__(self, client: Client, work: PassRead, lease: Lease) -> None:
        """`lease`: any of the pass, because all begin and end together."""
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
        """Whether further calls may start: there is time left for them, and the push service does
        not fail call after call."""
        now = time.monotonic()
        return (
            now + settings.CALL_SECONDS < self._leased_until
            and now < self._lease.begun + self._pass_seconds()
            and self._outages_in_a_row < breakers.LEAST_CALLS
            and not worker.is_stopping()
        )

    def may_start(self, recipient: Recipient) -> bool:
        """Whether the recipient's deadline is not over. Batches of a pass have different ones."""
        return time.monotonic() < recipient.message.expires_at

    def extend(self, leased_until: float) -> None:
        """The lease was renewed. `leased_until` is on the monotonic clock."""
        self._leased_until = leased_until

    def count(self) -> None:
        """Counts the calls since it was last called, because that takes longer than to note
        one."""
        sent = self._client.sent_bytes
        metering.called(self._lease, self._call_seconds, size=sent - self._sent_before)
        self._call_seconds, self._sent_before = [], sent

    @property
    def ended_with_outage(self) -> bool:
        return self._outages_in_a_row > 0

    def _pass_seconds(self) -> float:
        is_unknown_host = self._lease.push_service == breakers.UNKNOWN_HOSTS
        return settings.UNKNOWN_HOST_BATCH_SECONDS if is_unknown_host else settings.BATCH_SECONDS
