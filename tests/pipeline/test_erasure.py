"""What stays of a person after an erasure: nothing but counts, also while a send runs."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from notifications_app.erasure import person_forget
from notifications_app.models import Contact, Once
from notifications_app.pipeline import plan_queue, planning
from pushsvc.common.errors import NotFound
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.categories.consent import device_preferences, refusing
from subscriptions_app.models import Person, Subscription
from subscriptions_app.people.linking import devices_link
from subscriptions_app.people.services import PersonChange, person_change
from subscriptions_app.tags.services import TagChange, device_tags_change
from tests import factories
from tests.pipeline import support

USER = "user-fourty-two@example.com"


def dump():
    """Everything that the database stores, as `pg_dump` writes it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        parts = []
        for table in tables:
            with cursor.copy(f'COPY "{table}" TO STDOUT') as rows:
                parts += [bytes(part) for part in rows]
    return b"".join(parts)


def traces(*devices):
    """What tells who the person and the devices are, as a dump may have it."""
    texts = [USER]
    for device in devices:
        texts += [device.address, device.p256dh, device.auth]
        texts.append(hashlib.sha256(device.address.encode()).hexdigest())
    return [text.encode() for text in texts if text]


def left(dumped, wanted):
    return [text for text in wanted if text in dumped]


def people_of(sandbox, channel, count=3):
    """The devices of a person and of somebody else, and the subscriptions of the person's."""
    subscribed = factories.subscribe_browsers(sandbox, channel, count + 1)
    own = [row for _, row in subscribed[:-1]]
    devices_link(channel=channel, links={row.id: USER for row in own})
    for row in own:
        device_tags_change(row.id, TagChange(added=["of-fourty-two"]))
    attributes = {"name": "Anna Fourty-Two"}
    person_change(channel=channel, external_id=USER, change=PersonChange(attributes=attributes))
    return [device for device, _ in subscribed], own


def erase(channel):
    return person_forget(channel=channel, external_id=USER)


def test_a_dump_after_an_erasure_tells_nothing_of_the_person(sandbox, channel):
    factories.make_category(channel, "offers", default=True)
    _, devices = people_of(sandbox, channel)
    support.send(channel, category="offers", body="Fresh bread")
    own = [*traces(*devices), b"of-fourty-two", b"Anna Fourty-Two"]
    assert left(dump(), own) == own

    assert erase(channel) == 3

    assert left(dump(), own) == []
    with pytest.raises(NotFound):
        erase(channel)


def test_an_erasure_finds_who_was_only_named_by_a_send(channel):
    """Somebody who never signed in on a device, or whose row was purged."""
    factories.make_direct_notification(channel, people=[USER, "somebody else"])
    assert left(dump(), [USER.encode()])

    assert erase(channel) == 0

    assert not left(dump(), [USER.encode()])
    assert left(dump(), [b"somebody else"])
    with pytest.raises(NotFound):
        erase(channel)


@pytest.mark.parametrize("moment", ["planning", "planned", "waiting"])
def test_an_erasure_while_a_send_runs_keeps_its_sums(sandbox, channel, settings, moment):
    settings.PLAN_WINDOW = 2
    browsers, devices = people_of(sandbox, channel)
    own = traces(*devices)
    notification = factories.make_notification(channel)
    plan_queue.start_due()
    lease = support.claim_plan()
    assert support.plan_window(lease)
    if moment != "planning":
        planning.run_slice([lease])
    if moment == "waiting":
        for each in browsers:
            each.behave("throttled", times=1)
        support.deliver()

    erase(channel)
    planning.run_slice([lease])
    support.make_due(notification)
    support.deliver(notification)

    status, recipients, delivered, bounced = support.counts(notification)
    assert (status, recipients) == ("sent", delivered + bounced)
    assert set(support.codes(notification)) <= {"", "unsubscribed"}
    assert delivered == 1
    assert left(dump(), own) == []


def test_an_erasure_takes_rows_of_others_at_the_same_address_along(sandbox, channel):
    """Another browser once had the endpoint, so its row is set aside."""
    _, (device,) = people_of(sandbox, channel, 1)
    factories.register(channel, address=device.address)
    assert Subscription.objects.filter(address=device.address).count() == 2

    erase(channel)

    assert left(dump(), [device.address.encode()]) == []


def linked_meanwhile(channel, change):
    """Makes the change while another transaction links a second device to the person, which ends
    when the change waits for it. The device."""
    first, second = factories.add_subscriptions(channel, 2)
    devices_link(channel=channel, links={first.id: USER})
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            devices_link(channel=channel, links={second.id: USER})
            begun = pool.submit(support.closing_connection(change))
            support.until(support.waiting_sessions)
        begun.result()
    return Subscription.objects.filter(pk=second.pk).first()


def test_contacts_of_the_person_and_the_devices_are_deleted(channel):
    """Those of the devices are from the time before they were linked."""
    rows = [
        factories.add_subscription(channel, person=each)
        for each in (factories.make_person(channel, USER), None)
    ]
    keys = [rows[0].person_id, rows[0].pk, rows[1].pk]
    now = sql.now()
    for key in keys:
        fields = {"times": [now], "sends": [uuid7()], "expires_on": now}
        Contact.objects.create(key=key, channel_id=channel.pk, **fields)
    schedule = factories.make_schedule(channel)
    Once.objects.bulk_create(
        [Once(schedule=schedule, key=key, send=uuid7(), at=now) for key in keys]
    )
    erase(channel)

    for model in (Contact, Once):
        assert list(model.objects.values_list("key", flat=True)) == [rows[1].pk]


def test_a_device_that_is_linked_while_the_person_opts_out_ends_too(channel):
    out = PersonChange(opted_out=True)
    device = linked_meanwhile(
        channel, lambda: person_change(channel=channel, external_id=USER, change=out)
    )
    assert device.expired_code == "opted_out"


def test_a_device_that_is_linked_while_the_person_is_erased_goes_too(channel):
    assert linked_meanwhile(channel, lambda: erase(channel)) is None
    assert not Person.objects.exists()


# --- choices, against a model ---------------------------------------------------------------------

PEOPLE = ("anna", "ben", "cleo")
STEPS = st.one_of(
    st.tuples(st.just("choose"), st.integers(0, 3), st.none() | st.booleans()),
    st.tuples(st.just("guess"), st.integers(0, 3), st.none() | st.booleans()),
    st.tuples(st.just("link"), st.integers(0, 3), st.none() | st.sampled_from(PEOPLE)),
    st.tuples(st.just("opt"), st.sampled_from(PEOPLE), st.booleans()),
    st.tuples(st.just("say"), st.sampled_from(PEOPLE), st.none() | st.booleans()),
    st.tuples(st.just("visit"), st.integers(0, 3), st.none()),
    st.tuples(st.just("erase"), st.sampled_from(PEOPLE), st.none()),
)


class Model:
    """Four devices and three persons, as docs/categories.md and docs/privacy.md describe them."""

    def __init__(self):
        self.owner = [None] * 4
        self.own = [None] * 4  # the choice of a device
        self.proven = [None] * 4  # the last one that it made with proof
        self.active = [True] * 4
        self.choice = {}
        self.is_out = {}

    def choose(self, device, choice):
        if self.owner[device] is None:
            self.own[device] = self.proven[device] = choice
        else:
            self.choice[self.owner[device]] = choice
            self.own[device] = None

    def guess(self, device, choice):
        self.own[device] = choice

    def link(self, device, person):
        if self.owner[device] == person:
            return
        was, taken = self.owner[device], self.proven[device]
        is_proven = self.own[device] == taken
        self.owner[device], self.proven[device] = person, None
        if is_proven or was is not None or person is None:
            self.own[device] = None
        if person is None:
            return
        self.is_out.setdefault(person, False)
        if self.choice.get(person) is None and is_proven:
            self.choice[person] = taken
        self.active[device] = self.active[device] and not self.is_out[person]

    def opt(self, person, out):
        if person in self.is_out:
            self.is_out[person] = out
            for device in self.devices_of(person):
                self.active[device] = self.active[device] and not out

    def say(self, person, choice):
        if person in self.is_out:
            self.choice[person] = choice
            for device in self.devices_of(person):
                self.own[device] = None

    def visit(self, device, _):
        self.active[device] = not self.is_out.get(self.owner[device], False)

    def erase(self, person, _):
        if self.is_out.pop(person, None) is None:
            return
        self.choice.pop(person, None)
        for device in self.devices_of(person):
            self.owner[device] = self.own[device] = self.proven[device] = None
            self.active[device] = True  # the test registers it anew

    def devices_of(self, person):
        return [device for device, owner in enumerate(self.owner) if owner == person]

    def wants(self, device, default):
        said = (self.choice.get(self.owner[device]), self.own[device], default)
        return next(choice for choice in said if choice is not None)


class Service:
    """The same through the services."""

    def __init__(self, default):
        self.channel = factories.make_channel("Of one example", identity="trust")
        factories.make_category(self.channel, "offers", default=default)
        self.keys = [factories.browser_keys() for _ in range(4)]
        self.ids = [None] * 4
        for device in range(4):
            self.visit(device, None)

    def rows(self):
        stored = Subscription.objects.filter(channel=self.channel).select_related("person")
        found = {row.id: row for row in stored}
        return [found[id_] for id_ in self.ids]

    def choose(self, device, choice):
        self.guess(device, choice, auth=self.keys[device]["auth"])

    def guess(self, device, choice, auth=""):
        device_preferences(
            channel=self.channel,
            address=Address.of(Platform.WEB, self.address(device)),
            auth=auth,
            changes={"offers": choice},
        )

    def link(self, device, person):
        devices_link(channel=self.channel, links={self.ids[device]: person})

    def opt(self, person, out):
        self._change(person, PersonChange(opted_out=out))

    def say(self, person, choice):
        self._change(person, PersonChange(choices={"offers": choice}))

    def visit(self, device, _):
        address = self.address(device)
        row = factories.register(self.channel, address=address, **self.keys[device])
        self.ids[device] = row.id

    def address(self, device):
        return f"https://fcm.googleapis.com/{self.channel.id}/{device}"

    def erase(self, person, _):
        own = [row.person and row.person.external_id == person for row in self.rows()]
        try:
            person_forget(channel=self.channel, external_id=person)
        except NotFound:
            return
        for device in range(4):
            if own[device]:
                self.visit(device, None)

    def _change(self, person, change):
        try:
            person_change(channel=self.channel, external_id=person, change=change)
        except NotFound:
            return


@pytest.mark.django_db(transaction=True)
@examples(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(False, [("choose", 0, True), ("link", 0, "anna"), ("link", 1, "anna")])
@example(False, [("choose", 0, True), ("link", 0, "anna"), ("link", 0, None)])
@example(False, [("guess", 0, True), ("link", 0, "anna"), ("link", 1, "anna")])
@example(False, [("link", 0, "anna"), ("guess", 0, True), ("link", 0, "ben")])
@example(
    True, [("link", 0, "anna"), ("say", "anna", True), ("choose", 1, False), ("link", 1, "anna")]
)
@example(
    True, [("link", 0, "anna"), ("opt", "anna", True), ("link", 1, "anna"), ("visit", 0, None)]
)
@given(default=st.booleans(), steps=st.lists(STEPS, min_size=3, max_size=16))
def test_who_wants_a_category_is_as_the_model_says(default, steps):
    model, service = Model(), Service(default)
    for step, *arguments in steps:
        getattr(model, step)(*arguments)
        getattr(service, step)(*arguments)

    rows = service.rows()
    refused = refusing(service.channel.id, "offers", service.ids)
    assert [row.id not in refused for row in rows] == [model.wants(n, default) for n in range(4)]
    assert [row.expired_at is None for row in rows] == model.active
    assert [row.person and row.person.external_id for row in rows] == model.owner
    people = Person.objects.filter(channel=service.channel)
    assert {each.external_id for each in people} == set(model.is_out)
    notification = factories.make_notification(service.channel, category="offers")
    support.plan(notification)
    reached = [n for n in range(4) if model.active[n] and model.wants(n, default)]
    assert support.planned_ids(notification) == sorted(service.ids[n] for n in reached)
    support.assert_people_exact(service.channel)


def test_an_erasure_does_not_read_a_channel_that_grew_lately(channel, other_channel):
    """PostgreSQL knows of no device of the channel."""
    factories.add_crowd(other_channel, 3_000)
    sql.execute("ANALYZE subscriptions_app_subscription", {})
    factories.add_crowd(channel, 300)
    factories.add_subscriptions(channel, 1, person=factories.make_person(channel))

    read = support.most_rows_read(
        lambda: person_forget(channel=channel, external_id="user-42"), as_if_large=True
    )

    assert read < 50
