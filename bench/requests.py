"""CPU of a web process for each request, as a ratio to a view that only inserts one row.

`make bench-requests`. Each round makes all kinds of requests in turn, over one connection. The
figures are the CPU of the web process (/proc), so other load on the machine matters little.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pushsvc.local import embedded
from pushsvc.local.embedded import Home
from pushsvc.local.embedded.server import free_port
from pushsvc.local.supervisor import database

_TICKS = os.sysconf("SC_CLK_TCK")
_CHECKOUT = Path(__file__).parents[1]

Request = tuple[str, dict[str, object], dict[str, str]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--requests", type=int, default=200, help="of each kind in a round")
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as folder:
        home = Home(Path(folder))
        servers = embedded.start(home.root, durable=False)
        try:
            servers.put_into_environment()
            embedded.make_secrets(home)
            embedded.fill_environment(home)
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")
            database.migrate()
            channel = database.create_channel("bench")
            _prepare(servers.environment["DATABASE_URL"])
            with _running_web() as (pid, port):
                _report(_measured(pid, port, _kinds(channel), options.requests, options.rounds))
        finally:
            database.disconnect()
            servers.stop()


def _prepare(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE bench_bare (id bigserial PRIMARY KEY, text text)")
        connection.execute(
            "UPDATE channels_app_channel"
            " SET subscribes_per_minute = 1000000, sends_per_second = 1000000"
        )


@contextmanager
def _running_web() -> Iterator[tuple[int, int]]:
    port = free_port()
    command = (
        f"{sys.executable} -m granian --interface asginl --port {port} --http 1 --no-ws"
        " --no-log bench.bare:application"
    )
    process = subprocess.Popen(command.split(), cwd=_CHECKOUT)
    try:
        _await(port)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait()


def _await(port: int) -> None:
    for _ in range(600):
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as web:
                web.request("GET", "/healthz")
                web.getresponse().read()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the web process did not start")


def _kinds(channel: dict[str, Any]) -> dict[str, Callable[[int], Request]]:
    to_channel = {"X-Channel-ID": channel["channel_id"]}
    key = {"Authorization": f"Key {channel['api_key']}"}
    point = ec.generate_private_key(ec.SECP256R1()).public_key()
    p256dh = point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    keys = {"p256dh": _text(p256dh), "auth": _text(bytes(16))}

    def browser(name: object) -> dict[str, object]:
        endpoint = f"https://updates.push.services.mozilla.com/wpush/v2/{name}"
        return {"endpoint": endpoint, "keys": keys, "attributes": {"plan": "pro"}}

    return {
        "bare INSERT": lambda _: ("/bare", {"title": "x"}, {}),
        "subscribe, new": lambda number: ("/subscribe", browser(number), to_channel),
        "subscribe, known": lambda _: ("/subscribe", browser("known"), to_channel),
        "send-notification": lambda _: ("/send-notification", {"body": "x"}, key),
    }


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _measured(
    pid: int, port: int, kinds: dict[str, Callable[[int], Request]], count: int, rounds: int
) -> dict[str, float]:
    """Milliseconds of CPU for each request, by kind. The first round warms up."""
    found: dict[str, list[float]] = {name: [] for name in kinds}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as web:
        for turn in range(rounds + 1):
            for name, make in kinds.items():
                before = _cpu_seconds(pid)
                for number in range(count):
                    _ask(web, make(turn * count + number))
                if turn:
                    found[name].append(1000 * (_cpu_seconds(pid) - before) / count)
    return {name: median(values) for name, values in found.items()}


def _ask(web: http.client.HTTPConnection, request: Request) -> None:
    path, body, headers = request
    headers = {"Content-Type": "application/json", "Host": "localhost", **headers}
    web.request("POST", path, json.dumps(body), headers)
    answer = web.getresponse()
    content = answer.read()
    if answer.status not in (200, 201, 202):
        raise RuntimeError(f"{path} answered {answer.status}: {content!r}")


def _cpu_seconds(pid: int) -> float:
    """CPU of the process and its children."""
    total = 0
    for each in (pid, *_children(pid)):
        fields = Path(f"/proc/{each}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(each) for each in text.split()]


def _report(figures: dict[str, float]) -> None:
    bare = figures["bare INSERT"]
    for name, milliseconds in figures.items():
        sys.stdout.write(f"{name:20} {milliseconds:6.2f} ms {milliseconds / bare:5.1f} times\n")


if __name__ == "__main__":
    main()
