"""`manage.py doctor` and `/readyz` on a Redis of its own, which these tests break."""

import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import psutil
import pytest
import redis
from django.test import Client

from pushsvc.common.store import metric_reports, presence
from pushsvc.common.store.redis_client import Script, redis_client
from pushsvc.ops import health
from tests.faults.engines.servers import REDIS_6
from tests.ops.doctor.installation import expect
from tests.ops.helpers import eventually

USUAL = {"maxmemory": 0, "save": "", "min-replicas-to-write": 0}


def _is_a_replica(client):
    client.replicaof("127.0.0.1", "1")


def _is_full(client):
    client.config_set("maxmemory", 1)


def _cannot_save(client):
    """Nobody may write files to /proc."""
    client.config_set("dir", "/proc")
    client.config_set("save", "3600 1")
    client.bgsave()
    eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")


def _lacks_replicas(client):
    client.config_set("min-replicas-to-write", 1)


@pytest.fixture
def restored(installation):
    """The Redis, which is as it was after the test."""
    names = ("dir", "maxmemory-policy", "requirepass")
    before = {name: installation.redis.config_get(name)[name] for name in names}
    yield installation.redis
    installation.redis.replicaof("NO", "ONE")
    for name, value in (USUAL | before).items():
        installation.redis.config_set(name, value)
    installation.redis.flushall()


WITHOUT_WRITES = {
    _is_a_replica: "Name the primary",
    _is_full: "Raise maxmemory",
    _cannot_save: "turn saving off",
    _lacks_replicas: "min-replicas-to-write to 0",
}


@pytest.mark.django_db
@pytest.mark.parametrize("break_it", WITHOUT_WRITES)
def test_a_service_whose_broker_takes_no_writes_is_not_ready(
    installation, restored, break_it, settings, monkeypatch
):
    monkeypatch.setattr(health, "missing_now", health.Kept(health._missing))
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    settings.CELERY_BROKER_URL = installation.environment["REDIS_URL"]
    assert Client().get("/readyz").status_code == 200

    break_it(restored)

    assert Client().get("/readyz").json()["detail"] == "Missing: broker."


@pytest.mark.django_db
@pytest.mark.usefixtures("no_user_afterwards")
def test_a_user_with_rights_on_the_queues_only_is_enough_for_the_broker(
    installation, restored, settings, monkeypatch
):
    monkeypatch.setattr(health, "missing_now", health.Kept(health._missing))
    keys = ("~_kombu*", "~unacked*", "~tick*", "~plan*", "~web*", "~android*", "~ios*")
    settings.CELERY_BROKER_URL = as_user(installation, restored, *keys, "&*", "+@all")

    assert Client().get("/readyz").status_code == 200


@pytest.mark.parametrize(("break_it", "way"), WITHOUT_WRITES.items())
def test_a_redis_that_answers_and_takes_no_writes_is_named(installation, restored, break_it, way):
    break_it(restored)

    found = installation.expect("Redis is unavailable, or accepts no writes", "error", way)

    # Heartbeats do not arrive, so nothing is known about the workers.
    assert [title for title in found if "not running" in title] == []


@pytest.mark.parametrize(
    ("setting", "value", "title", "way"),
    [
        ("requirepass", "open sesame", "Redis is unavailable", "password of Redis into REDIS_URL"),
        ("maxmemory-policy", "allkeys-lru", "maxmemory-policy is allkeys-lru", "to noeviction"),
    ],
)
def test_a_redis_with_a_setting_that_harms_is_named(
    installation, restored, setting, value, title, way
):
    restored.config_set(setting, value)

    installation.expect(title, "error", way)


def as_user(installation, client, *rules):
    """REDIS_URL for a user with these rules beside the usual ones."""
    client.execute_command("ACL", "SETUSER", "shop", "reset", "on", ">secret", *rules)
    url = urlsplit(installation.environment["REDIS_URL"])
    return url._replace(netloc=f"shop:secret@{url.hostname}:{url.port}").geturl()


@pytest.fixture
def no_user_afterwards(restored):
    yield
    restored.execute_command("ACL", "DELUSER", "shop")


@pytest.mark.parametrize(
    ("forbidden", "title", "way"),
    [
        (
            "-client",
            "Redis detects lost workers late",
            "CLIENT SETNAME and CLIENT LIST",
        ),
        ("-info", "Version, memory and policy of Redis could not be examined", "ACL SETUSER"),
    ],
)
@pytest.mark.usefixtures("no_user_afterwards")
def test_a_command_that_the_user_may_not_use_is_a_warning(
    installation, restored, forbidden, title, way
):
    ours = as_user(installation, restored, "~*", "&*", "+@all", forbidden)

    found = installation.expect(title, "warning", way, REDIS_URL=ours)
    assert not [title for title in found if "unavailable" in title]


@pytest.mark.usefixtures("no_user_afterwards")
def test_a_user_who_may_only_read_is_named_with_the_rights(installation, restored):
    ours = as_user(installation, restored, "~*", "&*", "+@read", "+ping", "+select", "+client")

    installation.expect("Redis is unavailable", "error", "ACL SETUSER", REDIS_URL=ours)


@pytest.mark.usefixtures("no_user_afterwards")
def test_a_broker_that_refuses_commands_is_named_with_the_rights(installation, restored):
    url = as_user(installation, restored, "~*", "&*", "-@all", "+select").replace("/0", "/1")

    installation.expect("The broker redis:", "error", "ACL SETUSER", CELERY_BROKER_URL=url)


def test_a_redis_without_connections_left_is_not_told_to_start(installation, restored):
    usual = restored.config_get("maxclients")["maxclients"]
    restored.config_set("maxclients", 1)
    try:
        found = installation.doctor()
    finally:
        restored.config_set("maxclients", usual)

    for title in ("Redis is unavailable", "The broker redis:"):
        expect(found, title, "error", "maxclients")
    assert not [remedy for title, (_, remedy) in found.items() if "server is running" in remedy]


@pytest.fixture
def script(restored):
    """A script that runs without an end."""
    usual = restored.config_get("lua-time-limit")["lua-time-limit"]
    restored.config_set("lua-time-limit", 1)
    with ThreadPoolExecutor() as pool, restored.client() as own:
        running = pool.submit(own.eval, "while true do end", 0)
        eventually(lambda: _is_busy(restored))
        yield
        restored.script_kill()
        assert isinstance(running.exception(), redis.ResponseError)
    restored.config_set("lua-time-limit", usual)


def _is_busy(client):
    try:
        return not client.ping()
    except redis.ResponseError as error:
        return "busy" in str(error)


@pytest.mark.usefixtures("script")
def test_a_redis_that_runs_a_script_is_named_with_its_end(installation):
    found = installation.doctor()

    for title in ("Redis is unavailable", "The broker redis:"):
        expect(found, title, "error", "SCRIPT KILL")
    assert not [remedy for _, remedy in found.values() if "server is running" in remedy]


def test_a_redis_that_never_answers_is_not_told_to_start(installation):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"

        found = installation.doctor(REDIS_URL=url)

    for title in ("Redis is unavailable", "The broker redis:"):
        expect(found, title, "error", "responds too late", "SLOWLOG GET")


def own_addresses():
    """IPv4 addresses of this machine at which others reach it."""
    found = (each for all_ in psutil.net_if_addrs().values() for each in all_)
    ours = [each.address for each in found if each.family == socket.AF_INET]
    return [address for address in ours if not address.startswith("127.")]


@pytest.mark.skipif(not own_addresses(), reason="this machine has no address but the loopback")
def test_a_redis_that_serves_only_its_own_machine_is_named(installation, tmp_path):
    with socket.create_server(("", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([REDIS_6, "--port", str(port), "--save", ""], cwd=tmp_path)
    try:
        local = redis.Redis(port=port)
        eventually(lambda: _answers(local))
        url = f"redis://{own_addresses()[0]}:{port}/0"

        found = installation.doctor(REDIS_URL=url)

        for title in ("Redis is unavailable", "The broker redis:"):
            expect(found, title, "error", "DENIED", "protected-mode")
        assert max(len(remedy) for _, remedy in found.values()) < 600
    finally:
        server.terminate()
        server.wait()


def _answers(client):
    with suppress(redis.ConnectionError):
        return client.ping()


def connections_of_this_process(observer):
    """The ids of the one that it uses and of the silent one."""
    presence.tells_connections()
    name = f"pushsvc:{presence.process_id()}"
    silent = {int(each["id"]) for each in observer.client_list() if each["name"] == name}
    return {redis_client().client_id()} | silent


@pytest.mark.parametrize(
    "write",
    [
        lambda: redis_client().set("of a test", 1),
        lambda: redis_client().run(Script("redis.call('SET', 'of a test', 1)")()),
        lambda: metric_reports.Reporter("test").report(),
    ],
)
def test_a_process_leaves_a_server_that_became_a_replica(installation, restored, settings, write):
    """It keeps the connections, and another server may have the address since."""
    settings.REDIS_URL = installation.environment["REDIS_URL"]
    write()
    before = connections_of_this_process(restored)
    _is_a_replica(restored)

    with suppress(redis.ResponseError):
        write()

    after = connections_of_this_process(restored)
    assert len(after) == 2
    assert not before & after


def test_a_broker_of_its_own_that_takes_no_writes_is_named(installation, restored):
    """Beside a Redis that takes them. Both are one here, and differ by the number of a database."""
    _is_a_replica(restored)
    url = installation.environment["REDIS_URL"].removesuffix("/0") + "/1"

    installation.expect("The broker redis:", "error", "not a replica", CELERY_BROKER_URL=url)


def test_a_redis_that_is_nearly_full_is_named_while_it_still_takes_writes(installation, restored):
    restored.setrange("of another program", 20_000_000, "x")
    used = restored.info("memory")["used_memory"]
    restored.config_set("maxmemory", used + 1_500_000)  # room for the doctor's connections

    title = "Redis uses 90 % of its memory"
    found = installation.expect(title, "warning", "Raise maxmemory")
    assert not [title for title in found if "no writes" in title]


def test_a_key_of_another_program_in_place_of_a_queue_is_named(installation, restored):
    restored.set("web", "of another program")

    installation.expect("The broker redis:", "error", "LLEN web", "its own database of Redis")


def test_a_queue_that_fills_up_is_named(installation, restored):
    restored.rpush("tick", *["of another program"] * 201)

    installation.expect("The queue tick holds 201 messages", "warning", "its own broker")
