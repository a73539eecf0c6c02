"""Three persons and four devices in any order of requests, compared with a model."""

from collections import Counter
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from channels_app.feeds import EventKind
from channels_app.models import Feed
from channels_app.selectors import channel_totals
from channels_app.webhooks import webhook_create
from pushsvc.common.platforms import Platform
from subscriptions_app.addresses import Address
from subscriptions_app.devices.registration import subscription_register
from subscriptions_app.devices.services import (
    GoneSubscription,
    subscription_forget,
    subscription_unsubscribe,
    subscriptions_expire_or_prove,
)
from subscriptions_app.devices.values import Facts, Previous
from subscriptions_app.models import Person, Subscription
from subscriptions_app.people.linking import devices_link
from subscriptions_app.people.proof import Login
from tests.api.devices import HERE
from tests.factories import browser_keys, make_channel
from tests.pipeline.support import assert_people_exact

PERSONS = st.sampled_from(["user-1", "user-2", "user-3"])
DEVICES = st.integers(0, 3)
_NUMBERS = count()


class Device:
    """A browser, and what the model says of its subscription. `id` None: it has none."""

    def __init__(self):
        self.id = self.person = None
        self.is_active = False
        self.auth = browser_keys()["auth"]
        self.p256dh = browser_keys()["p256dh"]
        self.move()

    def move(self):
        self.endpoint = f"{HERE}/{next(_NUMBERS)}"


class People(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.channel = make_channel(identity="trust")
        kinds = [EventKind.CREATED, EventKind.EXPIRED]
        webhook_create(channel=self.channel, url="https://backend.shop.com/", events=kinds)
        self.devices = [Device() for _ in range(4)]
        self.opted_out = set()

    def register(self, device, previous=None, **facts):
        device.id = subscription_register(
            channel=self.channel,
            address=Address.of(Platform.WEB, device.endpoint),
            facts=Facts(device.p256dh, device.auth, **facts),
            previous=previous,
        ).id
        device.is_active = device.person not in self.opted_out

    @rule(number=DEVICES)
    def visit(self, number):
        self.register(self.devices[number])

    @rule(number=DEVICES, person=PERSONS)
    def log_in(self, number, person):
        device = self.devices[number]
        device.person = person
        self.register(device, login=Login(person))

    @rule(number=DEVICES)
    def log_out(self, number):
        device = self.devices[number]
        device.person = None
        self.register(device, login=Login(None))

    @rule(number=DEVICES, knows_auth=st.booleans(), has_row_there=st.booleans())
    def move(self, number, knows_auth, has_row_there):
        """By its id alone, the device belongs to nobody afterwards. Or it visits its new address
        before it says where it was."""
        device = self.devices[number]
        if device.id is None:
            return
        previous = Previous(
            Address.of(Platform.WEB, device.endpoint), device.auth if knows_auth else "", device.id
        )
        if not knows_auth:
            device.auth = browser_keys()["auth"]
            device.person = None
        device.move()
        if has_row_there and knows_auth:
            before = device.person, device.is_active
            self.register_anew(device)
            device.person, device.is_active = before
        self.register(device, previous)

    def register_anew(self, device):
        subscription_register(
            channel=self.channel,
            address=Address.of(Platform.WEB, device.endpoint),
            facts=Facts(device.p256dh, device.auth),
        )

    @rule(number=DEVICES)
    def expire(self, number):
        device = self.devices[number]
        row = Subscription.objects.filter(pk=device.id).first()
        if row is not None:
            gone = GoneSubscription(row.id, row.registered_at, "endpoint_gone")
            subscriptions_expire_or_prove(channel_id=self.channel.id, gone=[gone])
        device.is_active = False

    @rule(number=DEVICES)
    def unsubscribe(self, number):
        device = self.devices[number]
        subscription_unsubscribe(channel=self.channel, address=Address.of("web", device.endpoint))
        device.is_active = False

    @rule(number=DEVICES)
    def forget(self, number):
        device = self.devices[number]
        row = Subscription.objects.filter(pk=device.id).first()
        if row is not None:
            subscription_forget(subscription=row)
        device.id = device.person = None
        device.is_active = False

    @rule(links=st.dictionaries(DEVICES, st.none() | PERSONS, min_size=1))
    def link(self, links):
        known = {self.devices[number]: person for number, person in links.items()}
        known = {device: person for device, person in known.items() if device.id}
        devices_link(
            channel=self.channel, links={device.id: name for device, name in known.items()}
        )
        for device, person in known.items():
            device.person = person
            device.is_active = device.is_active and person not in self.opted_out

    @rule(person=PERSONS)
    def opt_out_while_nobody_is_active(self, person):
        if not any(each.is_active and each.person == person for each in self.devices):
            changed = Person.objects.filter(channel=self.channel, external_id=person)
            if changed.update(opted_out_at="2026-01-01T00:00Z"):
                self.opted_out.add(person)

    @invariant()
    def counts_are_those_of_the_model(self):
        active = [device for device in self.devices if device.is_active]
        linked = Counter(device.person for device in active if device.person)
        stored = Person.objects.filter(channel=self.channel, active_devices__gt=0)
        assert dict(stored.values_list("external_id", "active_devices")) == linked
        totals = channel_totals(self.channel.id)
        assert (totals.web_subscribers, totals.people, totals.linked_devices) == (
            len(active),
            len(linked),
            linked.total(),
        )
        assert_people_exact(self.channel)

    @invariant()
    def facts_for_webhooks_add_up_to_the_active_devices(self):
        facts = Counter(
            Feed.objects.filter(channel_id=self.channel.pk).values_list("subject", "kind")
        )
        came, went = (
            Counter({id_: count for (id_, of), count in facts.items() if of == kind})
            for kind in (EventKind.CREATED, EventKind.EXPIRED)
        )
        came.subtract(went)
        active = {device.id: 1 for device in self.devices if device.is_active}
        assert {id_: count for id_, count in came.items() if count} == active

    @invariant()
    def devices_belong_to_whom_the_model_says(self):
        ids = [device.id for device in self.devices if device.id]
        rows = Subscription.objects.filter(pk__in=ids).select_related("person")
        assert {row.pk: row.person and row.person.external_id for row in rows} == {
            device.id: device.person for device in self.devices if device.id
        }


@pytest.mark.django_db
def test_counts_and_links_are_those_of_a_model():
    run_state_machine_as_test(
        People,
        settings=settings(
            max_examples=20,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
