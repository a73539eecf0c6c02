"""Subscriptions come, go and change; notifications start, part by part, and are planned."""

from collections import defaultdict
from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from notifications_app.models import Notification, Plan, Target
from notifications_app.pipeline import plan_queue, planning, splitting, timed_starts
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.models import Subscription
from subscriptions_app.people.linking import devices_link
from tests import factories
from tests.pipeline import support
from tests.pipeline.model.state import (
    EARLIER,
    GROUPS,
    INCONCLUSIVE,
    KINDS,
    LATER,
    NAMED,
    PEOPLE,
    SOME,
    VARIANTS,
    WAITING,
    ZONES,
    Model,
)

_IN_PARTS = ("parts", "zones", "test")


def _tested(inconclusive):
    test = {"share": 50, "minutes": 15, "metric": "clicked", "inconclusive": inconclusive}
    return {"extras": {"variants": VARIANTS}, "test": test}


class Planning(Model):
    @initialize(
        kind=st.sampled_from(["channel", "test"]), inconclusive=st.sampled_from(INCONCLUSIVE)
    )
    def begin(self, kind, inconclusive):
        self.make_channel()
        self.subscribe(5)
        self.send(kind, inconclusive)
        self.start()
        self.claim_plans(1)
        self._plan_windows(self.plan_leases)

    @rule(count=st.integers(1, 7))
    def subscribe(self, count):
        each = [
            {
                "platform": "android",
                "attributes": {"group": GROUPS[n % 2]},
                "timezone": ZONES[n % 3],
            }
            for n in range(count)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(factories, "uuid7", self._new_id)
            factories.add_each(self.channel, each)

    @rule(data=st.data(), name=st.sampled_from([*PEOPLE, None]))
    def sign_in(self, data, name):
        """Or out. A device may be another's between planning and a call."""
        active = list(self._active().order_by("id"))
        if active:
            device = data.draw(st.sampled_from(active))
            devices_link(channel=self.channel, links={device.id: name})
            self.person_of[device.id] = name
            if name != NAMED:
                self._left({device.id}, ["targets"])

    @rule(data=st.data())
    def unsubscribe(self, data):
        active = list(self._active().order_by("id"))
        if active:
            leaving = data.draw(st.sampled_from(active))
            subscription_unsubscribe(
                channel=self.channel, address=Address.of("android", leaving.address)
            )
            self._left({leaving.id})

    @rule(data=st.data(), group=st.sampled_from(GROUPS))
    def move(self, data, group):
        """A device changes an attribute, so another part may find it."""
        active = list(self._active().order_by("id"))
        if active:
            moving = data.draw(st.sampled_from(active))
            moving.attributes = {"group": group}
            moving.save(update_fields=["attributes"])
            if group != "a":
                self._left({moving.id}, ["segment"])

    @rule(data=st.data(), zone=st.sampled_from(ZONES))
    def travel(self, data, zone):
        """A device changes its time zone, perhaps to one whose part is planned already."""
        active = list(self._active().order_by("id"))
        if active:
            moving = data.draw(st.sampled_from(active))
            if moving.timezone != zone:
                own = Subscription.objects.filter(pk=moving.pk)
                own.update(timezone=zone, timezone_changed_at=Now())

    @precondition(lambda self: len(self.notifications) < 3)
    @rule(
        kind=st.sampled_from(KINDS),
        inconclusive=st.sampled_from(INCONCLUSIVE),
    )
    def send(self, kind, inconclusive):
        """To everybody; to a segment, by its index if more than a window subscribes; to everybody
        in two parts, by local time, in variants, or after a test of them; to a person."""
        if kind == "targets":
            sent = factories.make_direct_notification(
                self.channel,
                id=self._new_id(),
                people=[NAMED, "nobody"],
                target_platforms=["android"],
            )
        else:
            segment_id = self.segment.id if kind == "segment" else None
            sent = factories.make_notification(
                self.channel,
                id=self._new_id(),
                target_platforms=["android"],
                segment_id=segment_id,
                timing=LATER.stored() if kind == "zones" else None,
                **(_tested(inconclusive) if kind == "test" else {}),
                **({"extras": {"variants": VARIANTS}} if kind == "split" else {}),
            )
        self.notifications.append(sent)
        self.kinds[sent.id] = kind
        self.bodies[sent.id] = sent.body
        self.inconclusive[sent.id] = inconclusive

    @rule()
    def start(self):
        begun = self.throughout.keys() | self.paused
        pending = [n.id for n in self.notifications if n.id not in begun]
        zoned = [each for each in pending if self.kinds[each] == "zones"]
        timed = [each for each in pending if self.kinds[each] == "test"] + zoned
        assert plan_queue.start_due() == len(pending) - len(timed)
        if timed:
            assert timed_starts.start_timed() == len(timed)
        # Its parts are released one by one, and to the last one it is time everywhere.
        Notification.objects.filter(pk__in=zoned).update(timing=EARLIER.stored())
        self.unreleased |= set().union(*(self._plans_of()[each] for each in zoned))
        rest = self._rest_plans().filter(notification_id__in=timed)
        self.unreleased |= set(rest.values_list("pk", flat=True))
        for notification_id in pending:
            kind = self.kinds[notification_id]
            self.throughout[notification_id] = self._audience(kind)
            if kind == "parts":
                self._part(Plan.objects.get(notification_id=notification_id))

    def _part(self, first):
        """Makes two parts, as a start does: some devices at once, all that are left later."""
        later = {"release_at": F("release_at") + timedelta(hours=1)}
        later["deadline_at"] = F("deadline_at") + timedelta(hours=1)
        Plan.objects.filter(pk=first.pk).update(rule=SOME)
        first.pk, first.part = None, 1
        first.save(force_insert=True)
        Plan.objects.filter(pk=first.pk).update(**later)
        Plan.objects.filter(pk=first.pk).update(due_at=F("release_at"))
        self.unreleased.add(first.pk)

    @precondition(lambda self: self.unreleased)
    @rule(data=st.data())
    def release(self, data):
        """The time of a part has come."""
        released = data.draw(st.sampled_from(sorted(self.unreleased)))
        plan = Plan.objects.get(pk=released)
        if plan.driver == "movers" and self.unreleased & self._plans_of()[plan.notification_id] - {
            released
        }:
            return  # it is released with the last one
        if plan.follows_test:  # it is only tried early
            Plan.objects.filter(pk=released).update(due_at=Now())
            self.unreleased.remove(released)
            return
        Plan.objects.filter(pk=released).update(release_at=Now(), due_at=Now())
        self.unreleased.remove(released)

    @rule(most=st.integers(1, 3))
    def claim_plans(self, most):
        leases = plan_queue.claim_plans(most=most)
        assert len(leases) <= most
        for lease in leases:
            assert lease.notification_id not in self.halted
            assert lease.plan_id not in self.unreleased
            assert lease.is_shared == (self.kinds[lease.notification_id] in _IN_PARTS)
        self.plan_leases += leases

    @precondition(lambda self: self.plan_leases)
    @rule(data=st.data(), is_slow=st.booleans())
    def plan_windows(self, data, is_slow):
        """By the planner that has the plans, or by one that lost some. If it is slow, its
        transaction ends after one statement."""
        claims = st.sampled_from(range(len(self.plan_leases)))
        drawn = data.draw(st.lists(claims, min_size=1, max_size=3))
        leases = {self.plan_leases[n].plan_id: self.plan_leases[n] for n in drawn}
        with pytest.MonkeyPatch.context() as patch:
            if is_slow:
                patch.setattr(planning, "_TRANSACTION_SECONDS", 0.0)
            self._plan_windows(list(leases.values()))

    def _plan_windows(self, leases):
        reached = defaultdict(set)
        for lease in leases:
            reached[lease.notification_id] |= self._may_plan(lease)

        planning.plan_windows(leases)

        for notification in Notification.objects.filter(pk__in=reached):
            rows = support.deliveries(notification)
            now = set(rows.values_list("subscription_id", flat=True))
            before = {id_ for of, id_ in self.rows if of == notification.pk}
            assert before <= now
            assert now - before <= reached[notification.pk]
            self.rows |= {(notification.pk, id_): (WAITING, 0) for id_ in now - before}
            if self.kinds[notification.pk] == "targets":
                self._assert_targets(notification.plans.get())
            is_planned = not notification.plans.filter(status="planning").exists()
            if is_planned and notification.pk not in self.stopped:
                assert self.throughout[notification.pk] <= now

    def _may_plan(self, lease):
        """The subscriptions that the holder of the lease may make recipients."""
        plan = Plan.objects.get(pk=lease.plan_id)
        is_held = plan.status == "planning" and plan.lease_number == lease.number
        if not is_held or plan.notification_id in self.halted:
            return set()
        if self.kinds[plan.notification_id] == "targets":
            return self._audience("targets")
        found = self._audience("segment" if plan.rule else "channel")
        if plan.bucket_to is not None:
            rest = splitting.rest_of(plan.notification, list(found))
            if not plan.follows_test:
                return found - rest
            return rest if lease.winner is not None else set()
        if plan.driver == "zones":
            found &= set(
                self._active().filter(timezone__in=plan.zones).values_list("id", flat=True)
            )
        return found

    def _assert_targets(self, plan):
        """The one window counts its recipients as the person's devices."""
        is_read = plan.status != "planning" and plan.notification_id not in self.stopped
        known = plan.recipient_count if is_read else None
        devices = Target.objects.of(plan.notification_id).values_list("devices", flat=True)
        if known:
            assert list(devices) == [known, None]
        elif not is_read:
            assert not any(devices)

    @precondition(lambda self: self.plan_leases)
    @rule(data=st.data())
    def lose_plan(self, data):
        lease = data.draw(st.sampled_from(self.plan_leases))
        self._let_pass("notifications_app_plan", lease.plan_id)
