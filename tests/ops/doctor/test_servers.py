"""`manage.py doctor` on servers of its own, which these tests break: settings of roles and of the
server, locks, a standby that is missing, a Redis that takes no writes.

It runs as a process, as an operator starts it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
import redis
from cryptography.fernet import Fernet

from pushsvc.local.embedded import start
from tests.faults.engines.servers import REDIS_6
from tests.ops.helpers import CHECKOUT, eventually

MOUNT, UMOUNT = shutil.which("mount"), shutil.which("umount")
SECRETS = {
    "SECRET_KEY": "k" * 50,
    "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
    "PUBLIC_BASE_URL": "https://push.example.com",
    "ALLOWED_HOSTS": "push.example.com",
    "VAPID_SUBJECT": "mailto:root@example.org",
    "TRUSTED_PROXIES": "1",
}


class Installation:
    """A migrated database and a Redis. `sql` and `redis` are the operator's own connections."""

    def __init__(self, addresses):
        self.environment = os.environ | SECRETS | addresses
        self.environment.pop("CELERY_BROKER_URL", None)
        self.url = addresses["DATABASE_URL"]
        self.redis = redis.Redis.from_url(addresses["REDIS_URL"], decode_responses=True)

    def run(self, *arguments, **environment):
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CHECKOUT,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def connect(self, name="operator", **arguments):
        return psycopg.connect(self.url, application_name=name, autocommit=True, **arguments)

    def sql(self, *statements):
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def doctor(self, **environment):
        """{title: (tone, remedy)} of what is not good, and the exit status."""
        ended = self.run("doctor", "--json", **environment)
        assert ended.stdout, ended.stderr
        return {
            each["title"]: (each["tone"], each["remedy"])
            for each in json.loads(ended.stdout)["findings"]
            if each["tone"] in {"warn", "bad"}
        }, ended.returncode


@pytest.fixture(scope="module")
def installation():
    with tempfile.TemporaryDirectory(prefix="pushsvc-ops-") as folder:
        servers = start(Path(folder) / "home", durable=False)
        try:
            made = Installation(servers.environment)
            migrated = made.run("migrate", "--no-input")
            assert migrated.returncode == 0, migrated.stderr
            yield made
        finally:
            servers.stop()


def as_role(installation, name):
    """DATABASE_URL for another role."""
    parts = urlsplit(installation.url)
    return parts._replace(netloc=f"{name}:{name}@127.0.0.1:{parts.port}").geturl()


@pytest.fixture
def role(installation):
    """A role to which a test gives settings."""
    installation.sql("CREATE ROLE app LOGIN PASSWORD 'app'", "GRANT pg_read_all_data TO app")
    yield as_role(installation, "app")
    installation.sql("DROP OWNED BY app", "DROP ROLE app")


def the(found, words):
    ((title, finding),) = [each for each in found.items() if words in each[0]]
    return title, *finding


def test_a_role_that_may_not_write_is_named(installation, role):
    installation.sql("ALTER ROLE app SET default_transaction_read_only = on")

    found, status = installation.doctor(DATABASE_URL=role)

    _, tone, remedy = the(found, "The database accepts no writes")
    assert (tone, status) == ("bad", 1)
    assert "default_transaction_read_only" in remedy


def test_a_short_limit_of_the_role_is_named(installation, role):
    installation.sql("ALTER ROLE app SET statement_timeout = '250ms'")

    found, _ = installation.doctor(DATABASE_URL=role)

    _, _, remedy = the(found, "The limit statement_timeout is only 250ms")
    assert "RESET statement_timeout" in remedy


def test_a_role_without_connections_left_is_not_told_to_start_the_server(installation, role):
    installation.sql("ALTER ROLE app CONNECTION LIMIT 0")

    found, status = installation.doctor(DATABASE_URL=role)

    _, _, remedy = the(found, "PostgreSQL cannot be reached")
    assert "All connections are in use" in remedy
    assert "is running" not in remedy
    assert status == 1


def test_a_wrong_password_is_not_told_to_start_the_server(installation):
    found, _ = installation.doctor(DATABASE_URL=as_role(installation, "nobody"))

    _, _, remedy = the(found, "PostgreSQL cannot be reached")
    assert remedy.endswith("The server runs and refuses the connection. Check DATABASE_URL.")


@pytest.fixture
def small_disk(installation, role):
    """Where the role's temporary tables are. It has room for nine pages."""
    place = Path(tempfile.mkdtemp(prefix="pushsvc-ops-"))
    subprocess.run([MOUNT, "-t", "tmpfs", "-o", "size=72k,mode=777", "tmpfs", place], check=True)
    try:
        with installation.connect() as connection:
            ((data,),) = connection.execute("SHOW data_directory").fetchall()
            owner = Path(data).stat()
            os.chown(place, owner.st_uid, owner.st_gid)
            connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
            connection.execute("GRANT CREATE ON TABLESPACE small TO app")
            connection.execute("ALTER ROLE app SET temp_tablespaces = small")
            yield role
            connection.execute("DROP TABLESPACE small")
    finally:
        subprocess.run([UMOUNT, place], check=True)
        place.rmdir()


@pytest.mark.skipif(
    os.geteuid() != 0 or MOUNT is None, reason="a small disk needs root, and mount(8)"
)
def test_a_full_disk_is_named(installation, small_disk):
    found, status = installation.doctor(DATABASE_URL=small_disk)

    _, tone, remedy = the(found, "PostgreSQL's disk is full")
    assert (tone, status) == ("bad", 1)
    assert "No space left on device" in remedy


def test_an_encoding_without_most_letters_is_named(installation):
    installation.sql("CREATE DATABASE plain ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")

    found, _ = installation.doctor(DATABASE_URL=installation.url.removesuffix("pushsvc") + "plain")

    _, tone, remedy = the(found, "The database's encoding is SQL_ASCII")
    assert tone == "bad"
    assert "ENCODING 'UTF8'" in remedy


@contextmanager
def in_background(installation, statement, wait_event):
    """Runs it until the end of the block, or until it is killed. It waits for what is named."""
    waiting = installation.connect("ours")
    thread = Thread(target=_repeat, args=(waiting, statement))
    thread.start()
    with installation.connect() as connection:
        query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = %s"
        try:
            eventually(
                lambda: connection.execute(query, [waiting.info.backend_pid, wait_event]).fetchone()
            )
            yield
        finally:
            connection.execute("SELECT pg_terminate_backend(%s)", [waiting.info.backend_pid])
            thread.join()
            waiting.close()


def _repeat(connection, statement):
    """Until it is killed: PostgreSQL's processes learn of a new setting one after the other, so the
    first may not wait."""
    with suppress(psycopg.Error):
        while True:
            connection.execute(statement)


def test_who_holds_a_lock_that_others_wait_for_is_named_while_it_holds_the_doctor_up(installation):
    """The doctor itself reads the table that is locked."""
    with ExitStack() as stack:
        holder = stack.enter_context(installation.connect("backfill"))
        stack.enter_context(holder.transaction(force_rollback=True))
        holder.execute("LOCK TABLE channels_app_channel")
        count = "SELECT count(*), pg_sleep(0) FROM channels_app_channel"
        stack.enter_context(in_background(installation, count, "relation"))
        holder.execute("SELECT pg_sleep(6)")

        found, status = installation.doctor()

        pid = holder.info.backend_pid
        _, tone, remedy = the(found, f"backfill (pid {pid}) blocks 1 statements")
        assert (tone, status) == ("bad", 1)
        assert f"pg_terminate_backend({pid})" in remedy
        _, _, said = the(found, "The work that goes on could not be read")
        assert "statement timeout" in said


def test_commits_that_wait_for_a_missing_standby_are_named(installation):
    installation.sql("CREATE TABLE lonely (x int)")
    installation.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
    try:
        with in_background(installation, "INSERT INTO lonely VALUES (1)", "SyncRep"):
            installation.sql("SELECT pg_sleep(6)")
            found, status = installation.doctor()
    finally:
        installation.sql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")

    _, tone, remedy = the(found, "1 commits wait for a standby")
    assert (tone, status) == ("bad", 1)
    assert "synchronous_standby_names" in remedy


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


@pytest.fixture
def restored(installation):
    """The Redis, which is as it was after the test."""
    before = {name: installation.redis.config_get(name)[name] for name in ("dir", "requirepass")}
    yield installation.redis
    installation.redis.replicaof("NO", "ONE")
    for name, value in ({"maxmemory": 0, "save": ""} | before).items():
        installation.redis.config_set(name, value)
    installation.redis.flushall()


@pytest.mark.parametrize(
    ("break_it", "way"),
    [
        (_is_a_replica, "Name the primary"),
        (_is_full, "Raise maxmemory"),
        (_cannot_save, "turn saving off"),
    ],
)
def test_a_redis_that_answers_and_takes_no_writes_is_named(installation, restored, break_it, way):
    break_it(restored)

    found, status = installation.doctor()

    _, tone, remedy = the(found, "Redis accepts no writes")
    assert (tone, status) == ("bad", 1)
    assert way in remedy


def test_a_redis_that_asks_for_a_password_is_named(installation, restored):
    restored.config_set("requirepass", "open sesame")

    found, status = installation.doctor()

    _, tone, remedy = the(found, "Redis refuses the password")
    assert (tone, status) == ("bad", 1)
    assert "REDIS_URL" in remedy


def test_a_redis_that_does_not_tell_who_is_connected_is_named(installation, restored):
    rules = ("on", ">secret", "~*", "&*", "+@all", "-client")
    restored.execute_command("ACL", "SETUSER", "shop", *rules)
    url = urlsplit(installation.environment["REDIS_URL"])
    ours = url._replace(netloc=f"shop:secret@{url.hostname}:{url.port}").geturl()
    found, _ = installation.doctor(REDIS_URL=ours)
    restored.execute_command("ACL", "DELUSER", "shop")

    _, tone, remedy = the(found, "Redis does not tell who is connected")
    assert tone == "warn"
    assert "CLIENT SETNAME and CLIENT LIST" in remedy


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

        ended = installation.run("doctor", "--json", REDIS_URL=url)

        found = json.loads(ended.stdout)["findings"]
        (remedy,) = [each["remedy"] for each in found if "only its own machine" in each["title"]]
        assert "protected-mode" in remedy
        assert max(len(each["remedy"]) for each in found) < 600
    finally:
        server.terminate()
        server.wait()


def _answers(client):
    with suppress(redis.ConnectionError):
        return client.ping()


def test_a_broker_of_its_own_that_takes_no_writes_is_named(installation, restored):
    """Beside a Redis that takes them. Both are one here, and differ by the number of a database,
    so the finding is there twice."""
    _is_a_replica(restored)
    url = installation.environment["REDIS_URL"].removesuffix("/0") + "/1"

    ended = installation.run("doctor", "--json", CELERY_BROKER_URL=url)

    found = json.loads(ended.stdout)["findings"]
    named = [each["subject"] for each in found if each["title"] == "Redis accepts no writes"]
    assert named == ["redis", "broker"]


def test_a_queue_that_fills_up_is_named(installation, restored):
    restored.rpush("tick", *["of another program"] * 201)

    found, _ = installation.doctor()

    _, _, remedy = the(found, "The queue tick holds 201 messages")
    assert "of its own" in remedy


UNSHARE = shutil.which("unshare")
SILENT_DNS = """
mount --bind "$1" /etc/resolv.conf
exec "$2" manage.py doctor --json
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or UNSHARE is None, reason="a private /etc/resolv.conf needs root and unshare"
)
def test_a_name_server_that_does_not_answer_is_asked_once_for_each_name(installation, tmp_path):
    """A C library asks it twice by default, and waits for five seconds each time."""
    configuration = tmp_path / "resolv.conf"
    configuration.write_text("nameserver 127.0.0.53\n")
    name = "db.push.test"
    url = urlsplit(installation.url)._replace(netloc=f"pushsvc:x@{name}:5432").geturl()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.53", 53))
        ended = subprocess.run(
            [UNSHARE, "-m", "sh", "-ec", SILENT_DNS, "sh", configuration, sys.executable],
            cwd=CHECKOUT,
            env=installation.environment | {"DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
        silent.setblocking(False)
        asked = []
        with suppress(BlockingIOError):
            while True:
                asked.append(silent.recv(1000)[2:])

    found = {each["title"]: each["remedy"] for each in json.loads(ended.stdout)["findings"]}
    assert "name resolution" in found["PostgreSQL cannot be reached"]
    assert asked
    assert len(asked) == len(set(asked))
