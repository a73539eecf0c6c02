"""`manage.py doctor` on a PostgreSQL of its own, which these tests break: disks, locks, a standby
that is missing, a name server that says nothing."""

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import psycopg
import pytest

from local.embedded import Home, start_all, to_stderr
from tests.faults.engines.servers import Standby
from tests.ops.doctor.installation import expect
from tests.ops.helpers import CHECKOUT, eventually

MOUNT, UMOUNT = shutil.which("mount"), shutil.which("umount")


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
    way = "No space left on device"
    installation.expect("PostgreSQL's disk is full", "error", way, DATABASE_URL=small_disk)


def test_an_encoding_without_most_letters_is_named(installation):
    installation.sql("CREATE DATABASE plain ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    plain = installation.url.removesuffix("pushsvc") + "plain"

    title = "The database's encoding is SQL_ASCII"
    installation.expect(title, "error", "ENCODING 'UTF8'", DATABASE_URL=plain)


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

        pid = holder.info.backend_pid
        title, way = (
            f"Statements that backfill (pid {pid}) blocks: 1",
            f"pg_terminate_backend({pid})",
        )
        found = installation.expect(title, "error", way)

        timeout = "canceling statement due to lock timeout."
        expect(found, "Some of the work could not be examined", "warning", timeout)
        expect(found, "The planner is not running", "error")  # known without the database


def test_commits_that_wait_for_a_missing_standby_are_named(installation):
    installation.sql("CREATE TABLE lonely (x int)")
    installation.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
    try:
        with in_background(installation, "INSERT INTO lonely VALUES (1)", "SyncRep"):
            installation.sql("SELECT pg_sleep(6)")
            title = "Commits that wait for a standby: 1"
            installation.expect(title, "error", "synchronous_standby_names")
    finally:
        installation.sql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")


@pytest.fixture
def standby(installation, home):
    """DATABASE_URL of a server that follows the installation's."""
    home = Home(home)
    home.secret("POSTGRES_PASSWORD", lambda: urlsplit(installation.url).password)
    server = Standby(home, durable=False, say=to_stderr)
    server.leader = installation
    started = start_all(home, {"DATABASE_URL": server})
    yield server.url
    started.stop()


def test_a_standby_is_named_with_the_ways_to_a_primary(standby, installation):
    ways = ("target_session_attrs=read-write", "SELECT pg_promote()")
    found = installation.expect(
        "DATABASE_URL leads to a standby", "error", *ways, DATABASE_URL=standby
    )
    assert not [title for title in found if "examined" in title or "disk" in title]


@pytest.mark.parametrize("number", ["14.20", "19.1"])
def test_a_version_of_postgresql_that_was_not_tried_is_named(installation, role, number):
    """A server that says so of itself, because none of that version is installed here."""
    major, minor = map(int, number.split("."))
    installation.sql(
        "CREATE SCHEMA other",
        "GRANT USAGE ON SCHEMA other TO app",
        "CREATE FUNCTION other.current_setting(name text) RETURNS text LANGUAGE sql AS $$"
        f" SELECT CASE name WHEN 'server_version_num' THEN '{10_000 * major + minor}'"
        f" WHEN 'server_version' THEN '{number}' ELSE pg_catalog.current_setting(name) END $$",
        "ALTER ROLE app SET search_path = other, pg_catalog, public",
    )
    try:
        title, way = f"PostgreSQL {number} is not supported", "Use PostgreSQL 15 to 18"
        installation.expect(title, "error", way, DATABASE_URL=role)
    finally:
        installation.sql("DROP SCHEMA other CASCADE")


@contextmanager
def silent_from(url, word):
    """DATABASE_URL of a relay that passes nothing on from this word of its client, and closes
    nothing, as a kernel in front of stopped processes."""
    server, ended = urlsplit(url), Event()
    with ExitStack() as sockets, socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            client = sockets.enter_context(listener.accept()[0])
            behind = sockets.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            while not ended.is_set():
                for ready in select.select([client, behind], [], [], 0.1)[0]:
                    data = ready.recv(100_000)
                    if not data or word in data:
                        return
                    (behind if ready is client else client).sendall(data)

        thread = Thread(target=serve)
        thread.start()
        netloc = f"{server.username}:{server.password}@127.0.0.1:{listener.getsockname()[1]}"
        yield server._replace(netloc=netloc, query="sslmode=disable").geturl()
        ended.set()
        thread.join()


@pytest.mark.parametrize("word", [b"statement_timeout", b"ROLLBACK", b"channels_app_channel"])
def test_a_server_that_stops_answering_is_named(installation, word):
    """PostgreSQL's own limits count only while it runs."""
    with silent_from(installation.url, word) as url:
        title = "PostgreSQL accepts connections and does not respond"
        found = installation.expect(title, "error", DATABASE_URL=url, timeout=30)

    assert not [title for title in found if "examined" in title]


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
