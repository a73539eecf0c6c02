"""`make run` with real processes: its output, its refusals, its restarts, and what it leaves
behind."""

import http.cookiejar
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.parse
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from bench.ports import own_port
from local.embedded import Home
from local.supervisor.demo import Demo
from local.supervisor.http import BUSY_SECONDS, Origin
from tests import missing
from tests.ops.helpers import (
    eventually,
    eventually_none_running,
    finish,
    kill,
    read_until,
    running,
    spawn,
)

CHECKOUT = Path(__file__).resolve().parents[2]
README = (CHECKOUT / "README.md").read_text()
LAST_LINE = "Ctrl-C stops everything."
GIVEN = "a-secret-that-the-environment-gives"
PHONE_SETTINGS = {"FCM_API_BASE", "GOOGLE_TOKEN_URI", "APNS_SERVER", "PROVIDER_CA_FILE"}
SERVERS = ("postgres", "redis")
READERS = (
    "web",
    "worker-plan",
    "worker-web",
    "worker-android",
    "worker-ios",
    "worker-hooks",
    "beat",
)


@dataclass
class Run:
    process: subprocess.Popen[str]
    home: Path
    port: int
    screen: str
    demo_at_start: dict

    def shown(self, label):
        return re.search(rf"^  {label} +(\S+)", self.screen, re.MULTILINE).group(1)

    def child(self, name):
        """Its pid; KeyError if there is no such child."""
        records = json.loads((self.home / "run" / "children.json").read_text())
        return {child: pid for child, pid, _ in records}[name]

    @property
    def settings(self):
        lines = (self.home / "settings.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    @property
    def demo(self):
        return read_demo(self.home)

    @property
    def control_ports(self):
        """The ports of the sandbox's HTTP interfaces, by platform."""
        ports = json.loads((self.home / "run" / "sandbox.json").read_text())
        return {"web": ports["web"], "android": ports["fcm"], "ios": ports["apns_control"]}


def read_demo(home):
    return json.loads((home / "demo.json").read_text())


@contextmanager
def make_run(home, **more):
    port = own_port()
    process = spawn(["-m", "local.run"], home, PORT=str(port), **more)
    try:
        screen = "\n".join(read_until(process, LAST_LINE))
        yield Run(process, home, port, screen, read_demo(home))
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def killed_run():
    """The first run in its home. Its processes were left behind."""
    with (
        tempfile.TemporaryDirectory(prefix="pushsvc-ops-") as folder,
        make_run(Path(folder) / "home", METRICS_TOKEN=GIVEN) as run,
    ):
        run.process.kill()
        run.process.wait()
        assert any("celery" in line for line in running(run.home))
        yield run


@pytest.fixture(scope="module")
def run(killed_run):
    """The next run in the same home."""
    with make_run(killed_run.home, METRICS_TOKEN=GIVEN) as run:
        yield run


def get(run, path, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{run.port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def as_owner(run, path):
    return get(run, path, Authorization=f"Key {run.shown('API key')}")


def origin(port):
    return Origin("127.0.0.1", port, f"http://127.0.0.1:{port}", BUSY_SECONDS)


def subscriber_count(run):
    return as_owner(run, f"/channel/{run.shown('Channel')}")["subscriber_count"]


def notification_of_start(run):
    """The second of the channel: the first is the killed run's."""
    return as_owner(run, f"/notifications/{run.shown('Channel')}")[-2]


def test_the_api_reports_the_demo_notification_as_delivered(run):
    assert "delivered 3 of 3." in run.screen
    shown = notification_of_start(run)
    assert shown["target_platforms"] == ["web", "android", "ios"]
    assert (shown["delivered_count"], shown["recipient_count"]) == (3, 3)


def test_the_demo_notification_reached_one_sandbox_device_of_each_platform(run):
    notification = notification_of_start(run)["notification_id"]
    devices = run.demo_at_start["devices"]
    paths = {
        "web": f"/subscriptions/{devices['web']['id']}/messages",
        "android": f"/devices/{devices['android']['id']}/messages",
        "ios": f"/apns/devices/{devices['ios']['token']}/messages",
    }
    for platform, path in paths.items():
        messages = origin(run.control_ports[platform]).request("GET", path).body["messages"]
        (received,) = [each for each in messages if notification in json.dumps(each)]
        assert received["accepted"], platform


def test_the_banner_says_that_phones_are_sent_to_the_sandbox(run):
    assert re.search(r"^  Android +the sandbox, http://127.0.0.1:\d+, not Google$", *in_screen(run))
    assert re.search(r"^  iOS +the sandbox, http://127.0.0.1:\d+, not Apple$", *in_screen(run))


def in_screen(run):
    return run.screen, re.MULTILINE


def test_the_sandboxes_addresses_are_saved_for_later_commands(run):
    assert set(run.settings) == {
        "PUBLIC_BASE_URL",
        "WEBPUSH_TRUSTED_ORIGINS",
        "WEBHOOK_TRUSTED_ORIGINS",
        *PHONE_SETTINGS,
    }


@pytest.mark.skipif(shutil.which("curl") is None, reason=missing.reason("curl"))
def test_the_printed_curl_command_sends(run):
    command = run.screen[run.screen.index("  curl ") :]
    pasted = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True, timeout=60)
    assert json.loads(pasted.stdout)["success"] is True


def test_the_printed_example_sends(run):
    command = re.search(r"^  (\. .+)$", *in_screen(run)).group(1)
    in_checkout = {"cwd": CHECKOUT, "capture_output": True, "text": True, "timeout": 60}
    pasted = subprocess.run(["/bin/sh", "-c", command], **in_checkout)
    assert re.search(r"^result sent: (\d+) of \1$", pasted.stdout, re.MULTILINE), pasted


def test_the_example_of_a_webhook_prints_what_happened(run):
    """The lines of README.md."""
    (lines,) = re.findall(r"^### Webhooks\n.*?```sh\n(.*?)```", README, re.MULTILINE | re.DOTALL)
    environment = f". {run.home}/demo.env\n"
    done = subprocess.run(
        ["/bin/bash", "-mc", environment + lines.replace("sleep 3", "sleep 8")],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert '"type": "notifications.finished"' in done.stdout, done


def test_the_printed_login_opens_the_console(run):
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    url = f"http://127.0.0.1:{run.port}/admin/login/?next=/admin/"
    opener.open(url, timeout=60).close()
    token = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
    password = re.search(r"password (\S+)", run.screen).group(1)
    form = {"login": "admin", "password": password, "csrfmiddlewaretoken": token}
    with opener.open(url, urllib.parse.urlencode(form).encode(), timeout=60) as page:
        assert page.url.endswith("/admin/")
        assert "Log out" in page.read().decode()


def test_the_printed_demo_page_is_that_of_the_demo_channel_and_holds_no_key(run):
    with urllib.request.urlopen(run.shown("Demo"), timeout=60) as page:
        text = page.read().decode()
    assert run.shown("Channel") in text
    assert run.shown("API key") not in text


def secrets(run):
    """What `make run` generated: keys, passwords, URLs with passwords, and the demo's API key."""
    kept = [path.read_text().strip() for path in (run.home / "secrets").iterdir()]
    return [*kept, run.shown("API key")]


def processes(run):
    """The supervisor, everything below it, and the servers, which the run before may have
    started: the Procfile's processes, the sandbox, PostgreSQL, Redis."""
    servers = [json.loads((run.home / f"run/{name}.json").read_text()) for name in SERVERS]
    leaders = map(psutil.Process, (run.process.pid, *(server["pid"] for server in servers)))
    return [each for leader in leaders for each in (leader, *leader.children(recursive=True))]


def test_no_process_shows_a_secret_in_its_environment_or_command_line(run):
    names = set()
    for process in processes(run):
        with suppress(psutil.NoSuchProcess):  # PostgreSQL's processes come and go
            shown = "\n".join([*process.cmdline(), *process.environ().values()])
            assert [secret for secret in secrets(run) if secret in shown] == [], process
            names.add(process.name())
    assert {"postgres", "redis-server", "celery", "granian"} <= names


def test_a_given_secret_reaches_only_the_processes_that_read_it(run):
    readers = {run.child(name) for name in READERS}
    for process in processes(run)[1:]:
        with suppress(psutil.NoSuchProcess):
            is_reader = not readers.isdisjoint(each.pid for each in [process, *process.parents()])
            assert (GIVEN in process.environ().values()) == is_reader, process


def test_every_file_with_a_secret_is_private(run):
    held = [secret.encode() for secret in [*secrets(run), GIVEN]]
    private = [run.home / "settings.env"]
    for path in run.home.rglob("*"):
        with suppress(FileNotFoundError):  # PostgreSQL's files come and go
            if path.is_file() and any(secret in path.read_bytes() for secret in held):
                private.append(path)
    of_demo = {run.home / "demo.json", run.home / "demo.env"}
    assert of_demo | set(run.home.glob("secrets/*")) <= set(private)
    assert {path: oct(path.stat().st_mode) for path in private if path.stat().st_mode & 0o177} == {}


def error_of_start(home, port):
    """The one line of a start that fails."""
    start = spawn(["-m", "local.run"], home, PORT=str(port))
    said = finish(start)
    assert (start.returncode, said.count("\n")) == (1, 1)
    return said


def test_a_second_start_in_the_same_home_is_rejected_in_one_line(run):
    said = error_of_start(run.home, own_port())
    assert f"already running from {run.home} (process {run.process.pid})" in said


def test_a_port_in_use_is_rejected_in_one_line_before_anything_starts(home):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} on 127.0.0.1" in error_of_start(home, port)
    assert not (home / "postgres").exists()


@pytest.mark.parametrize("port", ["eighty", "0", "70000", "-1", "٨٠"])
def test_an_invalid_port_is_rejected_in_one_line(home, port):
    assert "PORT is" in error_of_start(home, port)


def test_a_command_uses_the_running_servers_and_leaves_them_running(run):
    command = spawn(["manage.py", "create_channel", "Another", "--json"], run.home)
    made = json.loads(finish(command).splitlines()[-1])
    headers = {"Authorization": f"Key {made['api_key']}"}
    shown = get(run, f"/channel/{made['channel_id']}", **headers)
    assert shown["channel_info"]["name"] == "Another"


def test_demo_devices_are_replaced_if_the_last_notification_did_not_reach_all(run):
    demo = Demo.open(Home(run.home), origin(run.port), None)
    sandboxes = {platform: origin(port) for platform, port in run.control_ports.items()}
    before = run.demo
    demo.subscribe(sandboxes)
    assert run.demo == before
    demo.note_result({"status": "sent", "delivered_count": 2, "recipient_count": 3})
    demo.subscribe(sandboxes)
    demo.save_environment(sandboxes)  # for the test of the printed example
    for kind in ("devices", "credentials"):
        kept = [name for name in before[kind] if run.demo[kind][name] == before[kind][name]]
        assert kept == [], kind
    assert subscriber_count(run) == 3


@pytest.mark.parametrize("name", ["worker-web", "web"])
def test_a_killed_process_is_started_again(run, name):
    killed = run.child(name)
    kill(killed)
    eventually(lambda: run.child(name) != killed)
    eventually(lambda: is_ready(run))


def test_a_worker_that_is_hung_up_begins_anew_in_its_process(run):
    pid, log = run.child("worker-plan"), run.home / "log" / "worker-plan.log"
    begun = log.read_text().count(" ready.")
    os.kill(pid, signal.SIGHUP)
    eventually(lambda: run.child("worker-plan") != pid or log.read_text().count(" ready.") > begun)
    assert run.child("worker-plan") == pid


def is_ready(run):
    try:
        return get(run, "/readyz")
    except OSError:
        return None


def test_the_next_run_ends_what_a_killed_one_left_and_keeps_the_devices(killed_run, run):
    assert "ended processes that an earlier run had left behind" in run.screen
    assert run.shown("API key") == killed_run.shown("API key")
    assert "delivered 3 of 3." in run.screen
    assert run.demo_at_start == killed_run.demo_at_start


@pytest.mark.last
def test_a_stopped_run_leaves_nothing_and_without_the_sandbox_its_devices_are_sent_nothing(run):
    assert set(run.settings) > PHONE_SETTINGS
    assert subscriber_count(run) == 3
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.process.wait(timeout=60) == 0
    assert not eventually_none_running(run.home)
    with make_run(run.home, SANDBOX="off") as run:
        assert re.search(r"^  Android +Google$", *in_screen(run))
        assert re.search(r"^  iOS +Apple$", *in_screen(run))
        assert "delivered" not in run.screen
        assert set(run.settings) == {"PUBLIC_BASE_URL"}
        for child in ("web", "worker-plan", "worker-web", "worker-android", "worker-ios"):
            given = psutil.Process(run.child(child)).environ()
            assert not given.keys() & {*PHONE_SETTINGS, "WEBPUSH_TRUSTED_ORIGINS"}, child
        with pytest.raises(KeyError):
            run.child("sandbox")
        assert subscriber_count(run) == 0
