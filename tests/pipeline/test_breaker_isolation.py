"""Subscriptions of one channel cannot make a push service's breaker delay another channel."""

import os
import socket
from dataclasses import dataclass

import pytest
from django.db import connection
from django.db.models import Sum
from django.db.models.functions import Now
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from notifications_app.models import Batch, Delivery
from notifications_app.pipeline import breakers, dispatch
from notifications_app.states import DeliveryStatus
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.models import Subscription
from tests import factories
from tests.factories import make_channel
from tests.pipeline import support

MADE_UP = 25
BATCH_SIZE = 20
# Answers of the attacker's endpoints, at the push service that the others use too.
ANSWERS = {
    "accept": {},
    "error": {"status": 503},
    "reset": {},
    "garbage": {},
    "hang": {},
    "throttled": {"retry_after": 0},
    "redirect": {"location": "https://push.example/"},
    "made up": {},  # the host does not resolve
}
# Hosts that do not exist, under names of well-known push services, and those services.
HOSTS = [
    ("no{}.push.services.mozilla.com", "mozilla"),
    ("no{}.push.apple.com", "apple"),
    ("no{}.notify.windows.com", "wns"),
    ("wns2-no{}.notify.windows.com", "wns"),
    ("jmt17.google.com", "fcm"),
    ("android.googleapis.com", "fcm"),
]


@pytest.fixture(autouse=True)
def _no_names(monkeypatch):
    """As on a machine without a network: no look-up leaves it."""
    look_up = socket.getaddrinfo

    def only_loopback(host, *arguments, **options):
        if host in ("127.0.0.1", "::1", "localhost", None):
            return look_up(host, *arguments, **options)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", only_loopback)


def subscribe_made_up(channel, host, count=MADE_UP):
    """Subscriptions whose hosts do not resolve."""
    for number in range(count):
        factories.register(channel, address=f"https://{host.format(number)}/x{number}")


def try_again(notification):
    support.make_due(notification)
    support.deliver(notification)


@pytest.mark.parametrize("as_stored_before", [False, True])
@pytest.mark.parametrize(("host", "service"), HOSTS)
def test_hosts_that_do_not_resolve_delay_no_delivery_at_the_service_they_resemble(
    host, service, as_stored_before, sandbox, channel, other_channel
):
    subscribe_made_up(channel, host)
    if as_stored_before:
        Subscription.objects.update(push_service=service)
    fakes = support.send(channel)
    for _ in range(2):
        try_again(fakes)
    assert support.codes(fakes) == ["name_not_found"] * MADE_UP
    assert breakers.held() == []

    devices = factories.subscribe_browsers(sandbox, other_channel, 30)
    Subscription.objects.filter(channel=other_channel).update(push_service=service)
    notification = support.send(other_channel, ttl=60)

    assert support.counts(notification) == ("sent", 30, 30, 0)
    assert [len(device.receipts) for device, _ in devices] == [1] * 30


@dataclass(frozen=True)
class Attack:
    """`endpoints`: how many answer in each way. `sends`: sends before the other channel's, and
    `after` it. `passes`: how often everything that waits became due and was worked on before.
    `waits_are_over`: whether the breakers' waits have ended, so that they are half-open."""

    endpoints: dict[str, int]
    sends: int
    after: int
    passes: int
    waits_are_over: bool
    other_has_sent: bool


attacks = st.builds(
    Attack,
    endpoints=st.dictionaries(st.sampled_from(sorted(ANSWERS)), st.integers(1, 30), min_size=1),
    sends=st.integers(0, 3),
    after=st.integers(0, 2),
    passes=st.integers(0, 2),
    waits_are_over=st.booleans(),
    other_has_sent=st.booleans(),
)


def let_waits_pass():
    support.end_breaker_waits()
    Delivery.objects.filter(status=DeliveryStatus.WAITING).update(due_at=None)
    Batch.objects.filter(status="ready").update(due_at=Now())


class Attacker:
    def __init__(self, sandbox, endpoints):
        self.channel = make_channel("Mallory's")
        self.devices = []
        for answer, count in endpoints.items():
            if answer == "made up":
                subscribe_made_up(self.channel, HOSTS[0][0], count)
            else:
                made = [
                    device
                    for device, _ in factories.subscribe_browsers(sandbox, self.channel, count)
                ]
                for device in made:
                    device.behave(answer, **ANSWERS[answer])
                self.devices += made

    def work(self, attack):
        for _ in range(attack.sends):
            support.send(self.channel)
        for _ in range(attack.passes):
            let_waits_pass()
            support.deliver()
        if attack.waits_are_over:
            let_waits_pass()

    def calls(self):
        """Calls that the push service saw, and calls whose host did not resolve."""
        lost = Delivery.objects.filter(code="name_not_found").aggregate(all=Sum("attempts"))
        return sum(len(device.receipts) for device in self.devices) + (lost["all"] or 0)


@pytest.fixture
def small_pipeline(settings):
    settings.BATCH_SIZE = BATCH_SIZE
    settings.CALL_SECONDS = 2.0
    settings.UNKNOWN_HOST_CALL_SECONDS = 2.0


def forget_everything(sandbox):
    redis_client().flushdb()
    sandbox.reset()
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE notifications_app_notification, notifications_app_delivery,"
            " notifications_app_hourlystat, subscriptions_app_subscription CASCADE"
        )


@settings(
    max_examples=100 if os.environ.get("FAULTS_LONG") else 6,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(attack=attacks)
@example(attack=Attack({"error": 25}, 1, 1, 1, waits_are_over=False, other_has_sent=False))
@example(attack=Attack({"error": 25}, 1, 1, 1, waits_are_over=True, other_has_sent=True))
@example(
    attack=Attack({"made up": 25, "reset": 30}, 3, 2, 2, waits_are_over=True, other_has_sent=True)
)
def test_no_answers_of_one_channel_make_another_wait_longer_than_its_turns(
    attack, small_pipeline, sandbox, transactional_db
):
    """With one process: the bound of docs/delivery.md, in calls and without a wait."""
    try:
        attacker = Attacker(sandbox, attack.endpoints)
        other = make_channel("Bob's news")
        devices = factories.subscribe_browsers(sandbox, other, BATCH_SIZE + 5)
        if attack.other_has_sent:
            assert support.send(other).delivered_count == len(devices)
        attacker.work(attack)
        before = attacker.calls()

        notification = factories.make_notification(other, ttl=60)
        for _ in range(attack.after):
            factories.make_notification(attacker.channel)
        support.plan()
        while support.counts(notification)[0] == "processing":
            lease = support.claim(skip=breakers.held())
            assert lease, "the other channel waits"
            dispatch.deliver_batches([lease])

        assert support.counts(notification) == ("sent", len(devices), len(devices), 0)
        batches = Batch.objects.filter(notification=notification).count()
        assert attacker.calls() - before <= (batches + 1) * BATCH_SIZE
    finally:
        forget_everything(sandbox)
