"""`python -m sandbox`: what it prints is true, and it ends on a signal."""

import http.client
import json
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from bench.ports import own_port
from sandbox.apns.devices import ApnsDevice, ApnsKey
from tests.pipeline.support import until
from tests.sandbox.apns.sender import Provider, headers_of, token_of
from tests.sandbox.fcm.sender import FcmSender
from tests.sandbox.webpush.sender import request

ROOT = Path(__file__).parents[2]
CURLS = 11
PATIENCE = 300  # seconds for a process to start or to end, on a busy machine
PORTS = ("--port", "--fcm-port", "--apns-port", "--apns-control-port")


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "sandbox", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(*arguments):
    """What it printed: `settings` by name, `curls` without the word, `apns_control`."""
    with start(*arguments) as process:
        try:
            yield shown_by(process)
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


def shown_by(process):
    text = ""
    while text.count("curl ") < CURLS:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        text += line
    return SimpleNamespace(
        process=process,
        settings=dict(re.findall(r"^  ([A-Z_]+)=(\S+)$", text, re.MULTILINE)),
        curls=re.findall(r"curl (.*)", text),
        apns_control=re.search(r"iOS +(http\S+)", text)[1],
    )


def made(url):
    answered = request("POST", url)
    assert answered.status == 201
    return json.loads(answered.body)


def messages(url):
    return json.loads(request("GET", url).body)["messages"]


def google(settings):
    """The sandbox as FcmSender knows it, over HTTP."""
    origin = settings["FCM_API_BASE"]
    accounts = f"{origin}/projects/{{}}/service-accounts"
    return SimpleNamespace(
        origin=origin,
        token_uri=settings["GOOGLE_TOKEN_URI"],
        service_account=lambda project: made(accounts.format(project)),
    )


def apple(settings):
    """The sandbox as Provider knows it."""
    pem = Path(settings["PROVIDER_CA_FILE"]).read_text(encoding="ascii")
    return SimpleNamespace(server=settings["APNS_SERVER"], ca_pem=pem)


def key_of(credential):
    names = credential["key_id"], credential["team_id"]
    return ApnsKey(*names, credential["key"], {credential["topic"]})


def send_to_iphone(shown, key, device):
    with Provider(apple(shown.settings)) as provider:
        return provider.send(headers_of(device, token_of(key))).status


def test_android_messages_arrive_at_the_printed_settings():
    with serving("--port", "0") as shown:
        sender = FcmSender(google(shown.settings))
        devices = f"{sender.sandbox.origin}/projects/{sender.project}/devices"
        device = SimpleNamespace(**made(devices))
        assert sender.send(device).status == 200
        (message,) = messages(f"{sender.sandbox.origin}/devices/{device.id}/messages")
    assert message["accepted"]


def test_ios_messages_arrive_at_the_printed_settings():
    with serving("--port", "0") as shown:
        key = key_of(made(f"{shown.apns_control}/apns/keys"))
        device = ApnsDevice(**made(f"{shown.apns_control}/apns/devices"))
        assert send_to_iphone(shown, key, device) == 200
        (message,) = messages(f"{shown.apns_control}/apns/devices/{device.token}/messages")
    assert message["accepted"]


def test_the_sandbox_responds_to_every_printed_curl_command():
    with serving("--port", "0") as shown:
        assert shown.curls
        known = {}
        for line in shown.curls:
            method, url = re.search(r"(?:-X (\w+) )?(http\S+)", line).groups()
            path = url.replace("/ID/", f"/{known.get('id')}/")
            body = b'{"mode": "throttled"}' if method == "PUT" else b""
            answered = request(
                method or "GET", path.replace("/TOKEN/", f"/{known.get('token')}/"), body
            )
            assert answered.status in (200, 201, 204), line
            known |= json.loads(answered.body or b"{}")


def test_the_ports_follow_the_first_unless_they_are_given():
    free = own_port(4)
    with serving("--port", str(free), "--apns-port", "0") as shown:
        assert urlsplit(shown.settings["WEBPUSH_TRUSTED_ORIGINS"]).port == free
        assert urlsplit(shown.settings["FCM_API_BASE"]).port == free + 1
        assert urlsplit(shown.apns_control).port == free + 3
        assert int(shown.settings["APNS_SERVER"].split(":")[1]) not in range(free, free + 4)


def test_devices_and_credentials_in_the_state_directory_survive_a_restart(tmp_path):
    folder = tmp_path / "new" / "state"
    options = ("--port", "0", "--state-dir", str(folder), "--ca-file", str(tmp_path / "ca.pem"))
    with serving(*options) as shown:
        made(f"{shown.settings['WEBPUSH_TRUSTED_ORIGINS']}/subscriptions")
        android = FcmSender(google(shown.settings))
        devices = f"{android.sandbox.origin}/projects/{android.project}/devices"
        phone = SimpleNamespace(**made(devices))
        key = key_of(made(f"{shown.apns_control}/apns/keys"))
        iphone = ApnsDevice(**made(f"{shown.apns_control}/apns/devices"))
        assert shown.settings["PROVIDER_CA_FILE"] == str(tmp_path / "ca.pem")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert len(modes) == 4  # of the three services, and Apple's authority
    assert (stat.S_IMODE(folder.stat().st_mode), set(modes.values())) == (0o700, {0o600})
    with serving(*options) as shown:
        totals = request("GET", f"{shown.settings['WEBPUSH_TRUSTED_ORIGINS']}/messages")
        assert len(json.loads(totals.body)["devices"]) == 1
        again = google(shown.settings)
        again.service_account = lambda _project: android.key_file
        assert FcmSender(again).send(phone).status == 200
        assert send_to_iphone(shown, key, iphone) == 200


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_even_with_hanging_requests(signum):
    with serving("--port", "0") as shown:
        web, android = _hanging_browser(shown.settings), _hanging_phone(shown.settings)
        shown.process.send_signal(signum)
        _, errors = shown.process.communicate(timeout=PATIENCE)
        web.close()
        android.join()
    assert (shown.process.returncode, errors) == (0, "")


def _hanging_browser(settings):
    origin = settings["WEBPUSH_TRUSTED_ORIGINS"]
    browser = made(f"{origin}/subscriptions")
    resource = f"{origin}/subscriptions/{browser['id']}"
    assert request("PUT", f"{resource}/behaviour", b'{"mode": "hang"}').status == 204
    parts = urlsplit(browser["endpoint"])
    connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
    head = f"POST {parts.path} HTTP/1.1\r\nHost: localhost\r\nTTL: 1\r\nContent-Length: 0\r\n\r\n"
    connection.sendall(head.encode())
    until(lambda: messages(f"{resource}/messages"), PATIENCE)
    return connection


def _hanging_phone(settings):
    sender = FcmSender(google(settings))
    origin = sender.sandbox.origin
    phone = SimpleNamespace(**made(f"{origin}/projects/{sender.project}/devices"))
    resource = f"{origin}/devices/{phone.id}"
    assert request("PUT", f"{resource}/behaviour", b'{"mode": "hang"}').status == 204
    thread = threading.Thread(target=_cut_off, args=(sender, phone))
    thread.start()
    until(lambda: messages(f"{resource}/messages"), PATIENCE)
    return thread


def _cut_off(sender, phone):
    with pytest.raises(http.client.RemoteDisconnected):
        sender.send(phone)


@pytest.mark.parametrize("option", PORTS)
def test_a_port_in_use_is_reported_in_one_line(option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        others = [word for other in PORTS if other != option for word in (other, "0")]
        with start(*others, option, port) as process:
            output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert output == ""
    assert errors.startswith(f"Cannot serve on 127.0.0.1:{port}: ")
    assert len(errors.splitlines()) == 1
