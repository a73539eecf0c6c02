"""What the model knows, and how each example ends."""

from collections import defaultdict
from datetime import UTC, datetime
from itertools import count
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from channels_app.models import ProviderCredential
from notifications_app.models import Batch, Notification, Plan
from notifications_app.pipeline import batches
from notifications_app.sends import services
from notifications_app.timing import Timing
from subscriptions_app.models import Subscription
from tests import factories, segments
from tests.factories import make_channel
from tests.pipeline import support

WAITING, DELIVERED, BOUNCED = 0, 1, 2
GROUPS = ("a", "b")
PEOPLE = ("ada", "bob")
NAMED = "ada"
KINDS = ("channel", "segment", "parts", "zones", "targets", "test", "split")
_LONG_AGO = datetime(2015, 1, 1, tzinfo=UTC)
LATER = Timing(local_at="2040-01-02T09:00", after=_LONG_AGO, timezone="UTC")
EARLIER = Timing(local_at="2020-01-02T09:00", after=_LONG_AGO, timezone="UTC")
ZONES = ("", "Etc/GMT-3", "Etc/GMT+5")  # "": none, which counts as UTC
VARIANTS = [{"name": "short", "weight": 1, "title": "Sale"}, {"name": "long", "weight": 1}]
INCONCLUSIVE = ("leader", "hold", "long")
SOME = segments.attribute("group", "eq", "a")
_PAST = "UPDATE {table} SET lease_until = now() - interval '1 s' WHERE id = %s"


class Model(RuleBasedStateMachine):
    """`holder`: the attempt under which each leased batch is held. `rows`: (status, attempts) of
    each recipient. `flushes`: everything that was ever written or should have been. `throughout`:
    by notification, the subscriptions that have been active and in its audience since it started.
    `person_of`: who is signed in on a device.
    `unreleased` and `over`: plans, which are parts, before their release and after their deadline.
    `ended_tests` and `held`: tests of variants whose time has passed, and that were put on hold.
    `decisions`: of the others, as they were first. `inconclusive`: what a tick decides.
    """

    def make_channel(self):
        self.channel = make_channel("Alice's shop", android_enabled=True)
        ProviderCredential.objects.create(channel=self.channel, platform="android")
        self.segment = factories.make_segment(self.channel, SOME)
        self._numbers = count(1)
        self.notifications = []
        self.kinds = {}
        self.bodies = {}
        self.plan_leases = []
        self.leases = []
        self.holder = {}
        self.flushes = []
        self.rows = {}
        self.throughout = {}
        self.unreleased = set()
        self.over = set()
        self.person_of = {}
        self.paused = set()
        self.stopped = set()
        self.ended_tests = set()
        self.held = set()
        self.decisions = {}
        self.inconclusive = {}

    def teardown(self):
        try:
            self._bring_to_an_end()
        finally:
            with connection.cursor() as cursor:
                cursor.execute(
                    "TRUNCATE notifications_app_notification, notifications_app_delivery,"
                    " notifications_app_target, notifications_app_hourlystat,"
                    " subscriptions_app_subscription, subscriptions_app_person CASCADE"
                )

    def _new_id(self):
        """The same in each run of an example, because ids decide who is in a test."""
        return UUID(int=1 << 120 | next(self._numbers))

    @property
    def halted(self):
        return self.paused | self.stopped

    def _any(self, data):
        drawn = data.draw(st.sampled_from(self.notifications))
        drawn.refresh_from_db()
        return drawn

    def _active(self):
        return Subscription.objects.filter(channel=self.channel, expired_at=None)

    def _audience(self, kind):
        """Ids of the subscriptions that are active and in the audience."""
        found = self._active()
        if kind == "segment":
            found = found.filter(attributes__group="a")
        if kind == "targets":
            found = found.filter(person__external_id=NAMED)
        return set(found.values_list("id", flat=True))

    def _left(self, ids, kinds=KINDS):
        for notification_id in self.throughout:
            if self.kinds[notification_id] in kinds:
                self.throughout[notification_id] -= ids

    def _holds(self, lease):
        return self.holder.get(lease.batch_id) == lease.number

    def _plans_of(self):
        """Ids of the plans, by notification."""
        plans = defaultdict(set)
        for pk, notification_id in Plan.objects.values_list("pk", "notification_id"):
            plans[notification_id].add(pk)
        return plans

    @staticmethod
    def _rest_plans():
        """The plans of those who are not in a test of variants."""
        return Plan.objects.filter(bucket_from__gt=0)

    def _lose(self, batch_id):
        self._let_pass("notifications_app_batch", batch_id)
        assert batches.free_lost() == 1
        del self.holder[batch_id]

    @staticmethod
    def _let_pass(table, row_id):
        with connection.cursor() as cursor:
            cursor.execute(_PAST.format(table=table), [row_id])

    @staticmethod
    def _tick():
        support.tick()
        while batches.overdue():  # a tick takes a bounded number
            support.tick()

    def _bring_to_an_end(self):
        """As workers and ticks do in the end, whatever was left."""
        for paused in Notification.objects.filter(id__in=self.paused):
            services.notification_resume(channel_id=self.channel.id, notification_id=paused.id)
        pending = Notification.objects.filter(status="pending", timing__isnull=False)
        pending.update(timing=EARLIER.stored())
        for _ in range(3):  # the last part of a platform waits for the others, or for two decisions
            Plan.objects.filter(status="planning").update(lease_until=None, due_at=Now())
            support.plan()
            if Notification.objects.filter(decides_at__isnull=False).update(decides_at=Now()):
                self._tick()
        Batch.objects.filter(status="leased").update(lease_until=Now())
        batches.free_lost()
        for running in Notification.objects.filter(status="processing"):
            support.end_time(running)
        self._tick()
        left = Notification.objects.exclude(status__in=["sent", "failed"])
        assert not left.exclude(status="cancelled", id__in=self.stopped, recipient_count=0).exists()
        support.assert_exact(self.channel)
