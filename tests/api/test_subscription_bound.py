"""How many subscriptions clients without a key can store."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection, transaction

from channels_app.models import Channel
from channels_app.selectors import channel_totals
from notifications_app import retention
from notifications_app.pipeline import dispatch
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import (
    expired_purge,
    subscription_forget,
    subscription_unsubscribe,
)
from subscriptions_app.models import Subscription
from tests import factories
from tests.api.devices import ANDROID_TOKEN, HERE, THERE
from tests.api.support import code, owner_of
from tests.factories import browser, make_channel
from tests.pipeline import support

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 8


@pytest.fixture
def alice(transactional_db):
    return owner_of(make_channel(android_enabled=True))


def may_hold(owner, most):
    Channel.objects.filter(pk=owner.channel.pk).update(max_subscriptions=most)
    owner.channel.max_subscriptions = most


def subscribe(owner, body):
    """The status."""
    return owner.subscribe(body).status_code


def phone(number):
    return factories.phone("android", f"{ANDROID_TOKEN}-{number}")


def register(channel, number):
    return factories.register(channel, "android", f"known-{number}")


def prove(*rows):
    Subscription.objects.filter(pk__in=[row.pk for row in rows]).update(is_proven=True)


def rows_of(channel):
    return Subscription.objects.filter(channel=channel)


def check_counts(channel):
    totals = channel_totals(channel.id)
    active = rows_of(channel).filter(expired_at=None).count()
    assert (totals.stored_subscriptions, totals.subscribers) == (rows_of(channel).count(), active)


def most_seen(channel, is_over):
    """The most rows that any transaction could see, until now and at the end."""
    try:
        most = 0
        while not is_over.is_set():
            most = max(most, rows_of(channel).count())
        return max(most, rows_of(channel).count())
    finally:
        connection.close()


def connections_at_most():
    return int(sql.rows("SHOW max_connections", {})[0][0])


def test_concurrent_clients_never_exceed_the_bound_or_displace_a_proven_subscription(alice):
    """The bound leaves room at the beginning."""
    proven = [register(alice.channel, number) for number in range(10)]
    prove(*proven)
    older = [register(alice.channel, f"older-{number}") for number in range(10)]
    most = connections_at_most() + 60
    may_hold(alice, most)
    is_over = Event()

    with ThreadPoolExecutor(THREADS + 1) as pool:
        watching = pool.submit(most_seen, alice.channel, is_over)
        call = support.closing_connection(lambda number: subscribe(alice, phone(number)))
        answers = list(pool.map(call, range(most + 40)))
        is_over.set()

    assert set(answers) == {201}
    assert watching.result() == most
    assert rows_of(alice.channel).count() == most
    left = set(rows_of(alice.channel).values_list("pk", flat=True))
    assert {row.pk for row in proven} <= left
    assert not {row.pk for row in older} & left
    check_counts(alice.channel)


def test_a_channel_full_of_proven_subscriptions_refuses_new_ones_only(alice):
    body = browser(HERE)
    may_hold(alice, 1)
    id_ = alice.subscribe(body).json()["subscriptionId"]
    prove(Subscription.objects.get())

    refused = alice.subscribe(browser(THERE))
    assert code(refused, 503) == "subscriptions_full"
    assert refused.headers["Retry-After"] == "3600"

    assert subscribe(alice, browser(HERE)) == 503
    moved = browser(THERE, previous_endpoint=HERE, previous_subscription_id=id_)
    assert subscribe(alice, moved) == 200
    assert Subscription.objects.get().address == THERE
    check_counts(alice.channel)


def test_a_full_channel_affects_no_other_channel(alice, bob):
    may_hold(alice, 1)
    prove(register(alice.channel, 1))
    assert subscribe(alice, phone(2)) == 503
    assert subscribe(bob, browser(HERE)) == 201


def test_expired_subscriptions_count_and_the_oldest_are_displaced_first(alice):
    may_hold(alice, 2)
    first = register(alice.channel, 1)
    subscription_unsubscribe(channel=alice.channel, address=Address.of("android", first.address))
    second = register(alice.channel, 2)

    assert subscribe(alice, phone(3)) == 201

    assert not rows_of(alice.channel).filter(pk=first.pk).exists()
    assert rows_of(alice.channel).filter(pk=second.pk).exists()
    check_counts(alice.channel)


def test_a_lowered_bound_is_reached_step_by_step(alice):
    for number in range(5):
        register(alice.channel, number)
    may_hold(alice, 3)

    assert subscribe(alice, phone(1)) == 201

    assert rows_of(alice.channel).count() == 3
    check_counts(alice.channel)


def test_every_way_to_subscribe_and_to_end_is_counted(alice):
    channel = alice.channel
    rows = [register(channel, number) for number in range(4)]
    register(channel, 0)
    subscription_unsubscribe(channel=channel, address=Address.of("android", rows[1].address))
    subscription_forget(subscription=rows[2])
    factories.register(channel, "android", "known-3", auth="other")
    factories.register(channel, "android", "known-3", auth="another")
    check_counts(channel)

    Subscription.objects.filter(expired_at__isnull=False).update(expired_at="2020-01-01T00:00Z")
    assert expired_purge(100) == 2
    check_counts(channel)


def test_only_a_subscription_that_took_a_message_is_proven(alice, sandbox):
    (_, taken), (device, refused) = factories.subscribe_browsers(sandbox, alice.channel, 2)
    device.behave("too_large")
    support.plan(factories.make_notification(alice.channel))

    dispatch.deliver("web", seconds=30)

    is_proven = dict(Subscription.objects.values_list("pk", "is_proven"))
    assert is_proven == {taken.pk: True, refused.pk: False}


def test_a_later_message_to_a_proven_subscription_costs_no_statement_more(alice, sandbox):
    """The first message writes each subscription once; later ones write none."""
    factories.subscribe_browsers(sandbox, alice.channel, 3)
    writes = []
    for _ in range(2):
        support.plan(factories.make_notification(alice.channel))
        with connection.execute_wrapper(_noting(writes, "UPDATE subscriptions_app_subscription")):
            dispatch.deliver("web", seconds=30)
        writes.append("end")
    assert writes == ["UPDATE subscriptions_app_subscription", "end", "end"]


def _noting(writes, statement):
    def wrapper(execute, text, parameters, many, context):
        if statement in text:
            writes.append(statement)
        return execute(text, parameters, many, context)

    return wrapper


def test_retention_warns_of_a_channel_that_is_nearly_full(alice, bob, caplog):
    may_hold(alice, 10)
    for number in range(9):
        register(alice.channel, number)

    retention.warn_of_full_channels()

    (record,) = [each for each in caplog.records if each.message == "subscriptions.scarce"]
    assert (record.channel, record.stored, record.most) == (alice.channel.id, 9, 10)


# --- bytes ---


def test_the_largest_row_is_bounded(alice):
    """The row is made of characters of four bytes that do not compress."""

    def text(seed, length):
        return "".join(
            chr(0x1F300 + (seed * 977 + n * n * 31 + n * 7) % 700) for n in range(length)
        )

    attributes = {text(n, 50): text(n + 100, 255) for n in range(10)}
    endpoint = "https://fcm.googleapis.com/" + "x" * 1973
    body = browser(endpoint, attributes=attributes)

    assert subscribe(alice, body) == 201

    with transaction.atomic():
        columns = "address, attributes, p256dh, auth, push_service"
        size = f"SELECT pg_column_size(({columns})) FROM subscriptions_app_subscription"  # noqa: S608
        ((stored,),) = sql.rows(size, {})
    assert stored < 16 * 1024
