"""Whether every sum of a channel agrees with its rows. Most tests of the pipeline end with this, so
each table is read once, however many notifications the channel has."""

from collections import Counter
from typing import Any

from django.db.models import Count, Q, Sum

from channels_app.selectors import channel_totals
from notifications_app.models import (
    Batch,
    Delivery,
    EventHour,
    HourlyStat,
    Notification,
    OutcomeMinute,
)
from notifications_app.states import APART, DeliveryStatus
from subscriptions_app.models import Person, Subscription

_EVENTS = ("received", "clicked", "dismissed")


def assert_exact(channel):
    """Every sum of the channel agrees with its rows."""
    rows = _Rows(channel)
    rows.assert_people()
    rows.assert_outcomes()
    rows.assert_events()


def assert_people_exact(channel):
    """`active_devices`, `people` and `linked_devices` agree with the rows."""
    _Rows(channel).assert_people()


def assert_outcomes_exact(channel):
    """The sums of outcomes agree with the delivery rows."""
    _Rows(channel).assert_outcomes()


class _Rows:
    def __init__(self, channel):
        self._channel = channel
        self._notifications = list(Notification.objects.filter(channel=channel))
        self._ids = [each.id for each in self._notifications]
        self._batches = self._read(
            Batch, "id", "platform", "recipient_count", "delivered_count", "bounced_count"
        )
        self._platforms = {(of, batch): platform for of, batch, platform, *_ in self._batches}
        deliveries: Any = Delivery.objects.filter(notification_id__in=self._ids)
        self._deliveries = list(
            deliveries.values("notification_id", "batch_id", "status", "code").annotate(
                rows=Count("*"), **{kind: Count(f"{kind}_at") for kind in _EVENTS}
            )
        )
        active = Subscription.objects.filter(channel=channel, expired_at=None)
        self._active = active.aggregate(devices=Count("*"), linked=Count("person"))
        self._totals = channel_totals(channel.id)
        self._hours = HourlyStat.objects.filter(channel=channel).aggregate(
            **{
                name: Sum(name, default=0)
                for name in ("recipients", "delivered", "bounced", *APART, "clicked")
            }
        )

    def _read(self, model, *fields):
        rows = model.objects.filter(notification_id__in=self._ids)
        return list(rows.values_list("notification_id", *fields))

    def assert_people(self):
        active = Count("devices", filter=Q(devices__expired_at=None))
        people = list(Person.objects.filter(channel=self._channel).annotate(active=active))
        kept = {person.external_id: person.active_devices for person in people}
        assert kept == {person.external_id: person.active for person in people}
        assert not [person for person in people if person.active and person.left_at]
        assert self._totals.people == sum(count > 0 for count in kept.values())
        assert self._totals.linked_devices == self._active["linked"]

    def assert_outcomes(self):
        stored = {
            each.id: (each.recipient_count, each.delivered_count, each.bounced_count)
            for each in self._notifications
        }
        assert stored == self._outcomes_of_deliveries()
        assert stored == self._outcomes_of_batches()
        assert self._minutes() == self._codes()
        for each in self._notifications:
            assert (each.first_hand_over_at is not None) == (each.delivered_count > 0)
            if each.finished_at and each.first_hand_over_at:
                assert each.first_hand_over_at <= each.finished_at
        self._assert_apart()
        sums = tuple(sum(counts) for counts in zip(*stored.values(), strict=True)) or (0, 0, 0)
        assert (self._totals.recipients, self._totals.delivered, self._totals.bounced) == sums
        own = [stored[each.id] for each in self._notifications if not each.is_test]
        hours = self._hours
        counted = (hours["recipients"], hours["delivered"], hours["bounced"])
        assert counted == (tuple(sum(counts) for counts in zip(*own, strict=True)) or (0, 0, 0))
        assert self._totals.subscribers == self._active["devices"]
        sent = [each for each in self._notifications if each.status == "sent"]
        assert self._totals.notifications_sent == len(sent)

    def _assert_apart(self):
        """Recipients that a stop, an opt-out or the deadline ended, of notifications and hours."""
        codes = Counter()
        for (of, _platform, code), count in self._codes().items():
            codes[of, code] += count
        for code in APART:
            stored = {each.id: getattr(each, f"{code}_count") for each in self._notifications}
            assert stored == {each.id: codes[each.id, code] for each in self._notifications}
            own = [stored[each.id] for each in self._notifications if not each.is_test]
            assert self._hours[code] == sum(own)

    def _outcomes_of_deliveries(self):
        sums = {id_: Counter() for id_ in self._ids}
        for row in self._deliveries:
            sums[row["notification_id"]][row["status"]] += row["rows"]
        return {
            id_: (each.total(), each[DeliveryStatus.DELIVERED], each[DeliveryStatus.BOUNCED])
            for id_, each in sums.items()
        }

    def _outcomes_of_batches(self):
        sums = dict.fromkeys(self._ids, (0, 0, 0))
        for of, _id, _platform, *counts in self._batches:
            sums[of] = tuple(a + b for a, b in zip(sums[of], counts, strict=True))
        return sums

    def _minutes(self):
        """The outcomes by notification, platform and code, from the rows of minutes."""
        ended = Counter()
        for *key, count in self._read(OutcomeMinute, "platform", "code", "count"):
            ended[tuple(key)] += count
        return ended

    def _codes(self):
        """The same, from the delivery rows."""
        ended = Counter()
        for row in self._deliveries:
            if row["status"] != DeliveryStatus.WAITING:
                ended[row["notification_id"], self._platform(row), row["code"]] += row["rows"]
        return ended

    def assert_events(self):
        stored = Counter(
            {
                (each.id, kind): getattr(each, f"{kind}_count")
                for each in self._notifications
                for kind in _EVENTS
            }
        )
        by_platform, sums = Counter(), Counter()
        for row in self._deliveries:
            for kind in filter(row.get, _EVENTS):
                by_platform[row["notification_id"], self._platform(row), kind] += row[kind]
                sums[row["notification_id"], kind] += row[kind]
        assert stored == sums
        assert self._event_hours() == by_platform
        clicked = {each.id: each.clicked_count for each in self._notifications}
        assert self._totals.clicked == sum(clicked.values())
        own = [clicked[each.id] for each in self._notifications if not each.is_test]
        assert self._hours["clicked"] == sum(own)

    def _event_hours(self):
        events = Counter()
        for of, platform, *counts in self._read(EventHour, "platform", *_EVENTS):
            for kind, count in zip(_EVENTS, counts, strict=True):
                events[of, platform, kind] += count
        return events

    def _platform(self, delivery):
        return self._platforms[delivery["notification_id"], delivery["batch_id"]]
