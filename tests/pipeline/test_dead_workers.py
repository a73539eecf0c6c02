"""A worker that was killed: its lease is shortened, and not that of one that is only paused."""

import time
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import redis
from django.conf import settings
from django.db.models.functions import Now

from notifications_app.models import Batch
from notifications_app.pipeline import batches, outcomes
from notifications_app.pipeline.lease import HeldLeases
from pushsvc.common.store import redis_client
from tests import factories
from tests.pipeline import support


@contextmanager
def connected(process):
    """In the block, Redis has a connection of a process of this id, as a living one keeps."""
    pool = redis.ConnectionPool.from_url(settings.REDIS_URL, client_name=f"pushsvc:{process}")
    with redis.Redis(connection_pool=pool) as client:
        client.ping()
        yield


@contextmanager
def user_of_redis(settings, *rules):
    """In the block, this process is a user of Redis who has these rights."""
    usual, name = settings.REDIS_URL, f"user{uuid4().hex}"
    with redis.Redis.from_url(usual) as root:
        root.execute_command("ACL", "SETUSER", name, "on", ">secret", "~*", "&*", *rules)
        settings.REDIS_URL = (
            urlsplit(usual)
            ._replace(netloc=f"{name}:secret@{urlsplit(usual).netloc.rpartition('@')[2]}")
            .geturl()
        )
        yield
        settings.REDIS_URL = usual
        root.execute_command("ACL", "DELUSER", name)


def held_by(process, *, silent_for):
    """Makes this process the holder of the only batch, which renewed its lease so long ago. Returns
    the end of the lease."""
    rest = timedelta(seconds=settings.LEASE_SECONDS - silent_for)
    Batch.objects.update(holder=process, lease_until=Now() + rest)
    return Batch.objects.get().lease_until


@pytest.fixture
def claimed(channel):
    factories.add_subscriptions(channel, 1)
    notification = factories.make_notification(channel)
    support.plan(notification)
    return support.claim()


def test_a_claim_names_the_process_that_holds_the_batch(claimed):
    assert Batch.objects.get().holder == redis_client.process_id()


def our_connections(observer):
    """Those of other databases too, which tests before may have left."""
    ours = f"pushsvc:{redis_client.process_id()}"
    return [each for each in observer.client_list() if each["name"] == ours]


def end_our_connections(observer):
    for each in our_connections(observer):
        observer.client_kill_filter(_id=each["id"])


@pytest.fixture
def observer():
    """A client of Redis that is not ours."""
    with redis.Redis.from_url(settings.REDIS_URL, decode_responses=True) as client:
        yield client


def test_a_worker_asks_redis_nothing_on_the_connection_that_shows_its_life(claimed, observer):
    """The answer would keep the connection of a vanished machine open."""
    outcomes.record([claimed], [])
    redis_client.redis_client().ping()

    assert {each["cmd"].partition("|")[0] for each in our_connections(observer)} == {"client"}


def test_a_worker_that_lost_this_connection_opens_another_when_it_renews(claimed, observer):
    end_our_connections(observer)
    assert not our_connections(observer)

    leases = HeldLeases([claimed])
    leases.write_and_renew(lambda open_: outcomes.record(open_, []))

    assert our_connections(observer)


def test_a_dead_workers_lease_has_only_seconds_left(claimed):
    lease_until = held_by(uuid4(), silent_for=13)

    support.tick()

    batch = Batch.objects.get()
    assert (batch.status, batch.attempt) == ("leased", claimed.attempt)
    assert batch.lease_until < lease_until - timedelta(seconds=90)
    shortened = batch.lease_until
    support.tick()  # which does not begin the seconds again
    assert Batch.objects.get().lease_until == shortened
    support.lose_lease(batch.pk)
    assert support.claim().batch_id == batch.pk


def test_a_dead_worker_is_found_beside_a_connection_that_somebody_named(claimed):
    lease_until = held_by(uuid4(), silent_for=13)

    with connected("console"):
        support.tick()

    assert Batch.objects.get().lease_until < lease_until


def test_a_worker_that_lives_after_all_renews_a_shortened_lease(claimed):
    held_by(uuid4(), silent_for=13)
    support.tick()

    outcomes.record([claimed], [])

    full = timedelta(seconds=settings.LEASE_SECONDS - 60)
    assert Batch.objects.filter(lease_until__gt=Now() + full).exists()


def test_a_paused_worker_keeps_its_whole_lease(claimed):
    process = uuid4()
    lease_until = held_by(process, silent_for=110)

    with connected(process):
        support.tick()

    assert Batch.objects.get().lease_until == lease_until


def test_a_worker_that_renews_keeps_its_lease_without_a_connection_to_redis(claimed):
    for _ in range(10):
        began = time.monotonic()
        lease_until = held_by(uuid4(), silent_for=11)
        support.tick()
        if time.monotonic() - began < 1.0:  # twelve seconds of silence were not over
            break
    else:
        raise AssertionError("this machine takes a second for each tick")

    assert Batch.objects.get().lease_until == lease_until


def test_leases_keep_their_time_while_redis_does_not_tell_who_is_connected(claimed, settings):
    lease_until = held_by(uuid4(), silent_for=110)

    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    batches.shorten_dead()

    assert Batch.objects.get().lease_until == lease_until


@pytest.mark.parametrize(
    "rules",
    [["-client"], ["-client", "+client|setname"], ["-client", "+client|list"]],
    ids=" ".join,
)
def test_nobody_is_taken_for_dead_where_redis_forbids_to_name_or_to_list(
    claimed, settings, observer, rules
):
    """A proxy, which has connections of its own, hides the name as well."""
    lease_until = held_by(uuid4(), silent_for=110)
    end_our_connections(observer)

    with user_of_redis(settings, "+@all", *rules):
        batches.shorten_dead()
        assert redis_client.redis_client().ping()  # all else goes on

    assert Batch.objects.get().lease_until == lease_until
