"""Makes a worker's calls for one batch, in the event loop, and says when to make no more."""

import time

from django.conf import settings

from notifications_app.delivery.registry import Client
from notifications_app.delivery.types import Outcome, Target
from notifications_app.pipeline import breakers
from notifications_app.pipeline.evidence import is_outage
from notifications_app.pipeline.lease import Lease
from notifications_app.pipeline.reading import BatchRead
from pushsvc.common import worker


class Caller:
    """Belongs to the event loop while a pass runs: the task's thread then only schedules `extend`
    there. Before and after a pass the task's thread may use it."""

    def __init__(self, client: Client, batch: BatchRead, lease: Lease) -> None:
        self._client = client
        self._batch = batch
        self._lease = lease
        self._leased_until = lease.begun + settings.LEASE_SECONDS
        self._outages_in_a_row = 0

    async def call(self, target: Target) -> Outcome:
        credentials = self._batch.targets.credentials
        outcome = await self._client.send(self._batch.message, target, credentials)
        self._outages_in_a_row = self._outages_in_a_row + 1 if is_outage(outcome) else 0
        return outcome

    def may_start(self) -> bool:
        """Whether another call may start: there is time left for it, also before the deadline, and
        the push service does not fail call after call."""
        now = time.monotonic()
        return (
            now + settings.CALL_SECONDS < self._leased_until
            and now < self._lease.begun + self._batch_seconds()
            and now < self._batch.message.expires_at
            and self._outages_in_a_row < breakers.LEAST_CALLS
            and not worker.is_stopping()
        )

    def extend(self, leased_until: float) -> None:
        """The lease was renewed. `leased_until` is on the monotonic clock."""
        self._leased_until = leased_until

    @property
    def ended_with_outage(self) -> bool:
        return self._outages_in_a_row > 0

    def _batch_seconds(self) -> float:
        is_unknown_host = self._lease.push_service == breakers.UNKNOWN_HOSTS
        return settings.UNKNOWN_HOST_BATCH_SECONDS if is_unknown_host else settings.BATCH_SECONDS
