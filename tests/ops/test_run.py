"""`make run` itself, with real processes: what it shows, refuses, revives, and leaves behind."""

import http.cookiejar
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ops.helpers import (
    eventually,
    eventually_none_running,
    finish,
    kill,
    read_until,
    running,
    spawn,
)

LAST_LINE = "Ctrl-C stops everything."


@dataclass
class Run:
    process: subprocess.Popen[str]
    home: Path
    port: int
    screen: str

    def shown(self, label):
        return re.search(rf"^  {label} +(\S+)", self.screen, re.MULTILINE).group(1)

    def child(self, name):
        records = json.loads((self.home / "run" / "children.json").read_text())
        return {child: pid for child, pid, _ in records}[name]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def make_run(home, **more):
    port = free_port()
    process = spawn(["-m", "pushsvc.run"], home, PORT=str(port), **more)
    try:
        screen = "\n".join(read_until(process, LAST_LINE))
        yield Run(process, home, port, screen)
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=15)


@pytest.fixture(scope="module")
def run():
    with (
        tempfile.TemporaryDirectory(prefix="pushsvc-ops-") as folder,
        make_run(Path(folder) / "home") as run,
    ):
        yield run


def get(run, path, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{run.port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=5) as response:
        return json.load(response)


def first_notification(run):
    headers = {"Authorization": f"Key {run.shown('API key')}"}
    return get(run, f"/notifications/{run.shown('Channel')}", **headers)[-1]


def test_the_demo_notification_was_delivered_by_the_word_of_the_interface(run):
    assert "delivered 1 of 1." in run.screen
    shown = first_notification(run)
    assert (shown["delivered_count"], shown["recipient_count"]) == (1, 1)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_shown_curl_command_sends_as_pasted(run):
    command = run.screen[run.screen.index("  curl ") :]
    pasted = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True, timeout=10)
    assert json.loads(pasted.stdout)["success"] is True


def test_the_shown_login_opens_the_console(run):
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    url = f"http://127.0.0.1:{run.port}/admin/login/?next=/admin/"
    opener.open(url, timeout=5).close()
    token = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
    password = re.search(r"password (\S+)", run.screen).group(1)
    form = {"username": "admin", "password": password, "csrfmiddlewaretoken": token}
    with opener.open(url, urllib.parse.urlencode(form).encode(), timeout=5) as page:
        assert page.url.endswith("/admin/")
        assert "Log out" in page.read().decode()


def test_what_is_kept_of_secrets_is_private(run):
    private = [run.home / "demo.json", run.home / "settings.env", *run.home.glob("secrets/*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


def test_a_second_start_of_the_same_home_is_refused_in_one_line(run):
    second = spawn(["-m", "pushsvc.run"], run.home, PORT=str(free_port()))
    said = finish(second)
    assert second.returncode == 1
    assert said.count("\n") == 1
    assert f"already running from {run.home} (process {run.process.pid})" in said


def test_a_command_uses_the_running_servers_and_leaves_them_running(run):
    command = spawn(["manage.py", "create_channel", "Another", "--json"], run.home)
    made = json.loads(finish(command).splitlines()[-1])
    headers = {"Authorization": f"Key {made['api_key']}"}
    shown = get(run, f"/channel/{made['channel_id']}", **headers)
    assert shown["channel_info"]["name"] == "Another"


@pytest.mark.parametrize("name", ["worker-web", "web"])
def test_a_killed_process_is_started_again(run, name):
    killed = run.child(name)
    kill(killed)
    eventually(lambda: run.child(name) != killed)
    eventually(lambda: is_ready(run), seconds=20)


def is_ready(run):
    try:
        return get(run, "/readyz")
    except OSError:
        return None


def test_a_port_in_use_is_refused_in_one_line_before_anything_starts(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        start = spawn(["-m", "pushsvc.run"], home, PORT=str(port))
        said = finish(start)
    assert start.returncode == 1
    assert said.count("\n") == 1
    assert f"port {port} on 127.0.0.1" in said
    assert not (home / "postgres").exists()


@pytest.mark.parametrize("port", ["eighty", "0", "70000", "-1", "٨٠"])
def test_a_port_that_is_none_is_refused_in_one_line(home, port):
    start = spawn(["-m", "pushsvc.run"], home, PORT=port)
    said = finish(start)
    assert start.returncode == 1
    assert said.count("\n") == 1
    assert "PORT is" in said


def test_a_killed_run_is_cleared_up_by_the_next_and_a_stopped_one_leaves_nothing(home):
    with make_run(home) as first:
        first.process.kill()
        first.process.wait()
        left = running(home)
    assert any("celery" in line for line in left)
    with make_run(home) as second:
        assert "ended what an earlier run had left behind" in second.screen
        assert second.shown("API key") == first.shown("API key")
        assert "delivered 1 of 1." in second.screen
        os.killpg(second.process.pid, signal.SIGINT)
        assert second.process.wait(timeout=15) == 0
        assert not eventually_none_running(home)
