"""A worker that was killed: its lease is shortened, and not that of one that is only paused."""

import os
import subprocess
import sys
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
from pushsvc.common.store import presence
from pushsvc.common.store.redis_client import redis_client
from tests import factories
from tests.ops.helpers import CHECKOUT, eventually
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
    assert Batch.objects.get().holder == presence.process_id()


def connections_of(process, observer):
    """{id: last command} of its connections that have a name."""
    named = [each for each in observer.client_list() if each["name"] == f"pushsvc:{process}"]
    return {each["id"]: each["cmd"] for each in named}


def end_our_connections(observer):
    """Those of other databases too, which tests before may have left."""
    for connection in connections_of(presence.process_id(), observer):
        observer.client_kill_filter(_id=connection)


@pytest.fixture
def observer():
    """A client of Redis that is not ours."""
    with redis.Redis.from_url(settings.REDIS_URL, decode_responses=True) as client:
        yield client


def test_nothing_is_asked_on_the_connection_that_shows_a_process(observer):
    """The answer would keep the connection of a vanished machine open."""
    assert presence.tells_connections()
    redis_client().ping()

    commands = connections_of(presence.process_id(), observer).values()
    assert {command.partition("|")[0] for command in commands} == {"client"}


def test_a_process_shows_itself_to_a_redis_that_took_the_place_of_another(observer, monkeypatch):
    """This process notices that by a failed command. Its silent connection may still seem open."""
    end_our_connections(observer)
    presence.tells_connections()
    (first,) = connections_of(presence.process_id(), observer)
    presence.tells_connections()
    assert list(connections_of(presence.process_id(), observer)) == [first]

    monkeypatch.setattr(redis_client(), "failures", redis_client().failures + 1)
    presence.tells_connections()

    (second,) = connections_of(presence.process_id(), observer)
    assert second != first


_PROCESS = """
import django, sys
django.setup()
from pushsvc.common.store import presence
presence.start()
print(presence.process_id(), flush=True)
sys.stdin.read()
"""


def test_a_process_is_shown_until_it_is_killed(observer):
    """Also if Redis, or a proxy, closes its connection meanwhile."""
    environment = {**os.environ, "REDIS_URL": settings.REDIS_URL}
    with subprocess.Popen(
        [sys.executable, "-c", _PROCESS],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        name = process.stdout.readline().strip()
        eventually(lambda: connections_of(name, observer))
        (first,) = connections_of(name, observer)
        observer.client_kill_filter(_id=first)

        eventually(lambda: connections_of(name, observer).keys() - {first})
        process.kill()
    eventually(lambda: not connections_of(name, observer))


def test_a_dead_workers_lease_has_only_seconds_left(claimed):
    lease_until = held_by(uuid4(), silent_for=13)

    support.tick()

    batch = Batch.objects.get()
    assert (batch.status, batch.lease_number) == ("leased", claimed.number)
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


def test_a_late_flush_of_a_dead_process_does_not_keep_the_tick(claimed):
    lease_until = held_by(uuid4(), silent_for=110)

    assert support.waits_for_nobody(Batch.objects.all(), batches.shorten_dead) == 0

    assert Batch.objects.get().lease_until == lease_until
    assert batches.shorten_dead() == 1


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
        assert redis_client().ping()  # all else goes on

    assert Batch.objects.get().lease_until == lease_until
