"""A complete pushsvc for a bench: the processes of `make run`, on free ports, in a temporary home.
It uses DATABASE_URL and REDIS_URL if they are set."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import psycopg
import redis

from bench.ports import own_port
from local import embedded
from local.embedded import Home
from local.supervisor.http import Origin

_LAST_LINE = "Ctrl-C stops everything."
_SETTLE_SECONDS = 3.0


@dataclass
class System:
    """A running service with one channel, to which one sandbox device is subscribed."""

    service: Origin
    sandbox: Origin
    channel_id: str
    api_key: str
    device_id: str
    database: psycopg.Connection[Any]  # commits each statement
    redis: "redis.Redis"
    pids: Mapping[str, int]  # of the supervisor and the servers
    home: Home

    def send(self, **fields: object) -> str:
        """Sends to the channel; returns the notification's id."""
        body = {"body": "bench", **fields}
        return str(self._call("POST", "/send-notification", body)["notification_id"])

    def repeat(self, times: int, at: datetime) -> None:
        """Makes as many schedules, of which each has an occurrence at this moment, and deletes
        those of earlier calls. They are copied in the database, because a channel has at most
        200."""
        self.database.execute("DELETE FROM notifications_app_occurrence")
        self.database.execute("DELETE FROM notifications_app_schedule")
        body = {
            "name": "bench",
            "notification": {"body": "bench"},
            "recurrence": {"rule": "FREQ=DAILY", "at": ["00:00"], "timezone": "UTC"},
        }
        made = self._call("POST", f"/channel/{self.channel_id}/schedules", body)["schedule_id"]
        self.database.execute(_REPEAT, {"made": made, "times": times, "at": at})

    def notification(self, notification_id: str) -> dict[str, Any]:
        shown: dict[str, Any] = self._call("GET", f"/notification/{notification_id}")
        return shown

    def change(self, notification_id: str, how: str) -> None:
        """Pauses, resumes or stops the notification."""
        self._call("POST", f"/notification/{notification_id}/{how}")

    def wait_sent(self, notification_id: str) -> dict[str, Any]:
        """Waits until the notification is sent, and returns it. Asks every 50 ms."""
        while (shown := self.notification(notification_id))["status"] != "sent":
            time.sleep(0.05)
        return shown

    def subscribe(self, count: int) -> list[str]:
        """Subscribes `count` more devices over HTTP, without the limit for one address. Returns
        their ids in the sandbox."""
        self.database.execute("UPDATE channels_app_channel SET subscribes_per_minute = 1000000")
        made = self.sandbox.request("POST", "/subscriptions", {"count": count})
        devices: list[dict[str, Any]] = made.body["subscriptions"]
        headers = {"X-Channel-ID": self.channel_id}

        def subscribe(device: dict[str, Any]) -> int:
            return self.service.request("POST", "/subscribe", device, headers).status

        with ThreadPoolExecutor(8) as pool:
            statuses = set(pool.map(subscribe, devices))
        if statuses != {201}:
            raise RuntimeError(f"subscribing answered {statuses}")
        return [device["id"] for device in devices]

    def link(self, external_id: str) -> None:
        """Links the channel's browsers to one person."""
        found = self.database.execute(
            "SELECT id FROM subscriptions_app_subscription"
            " WHERE channel_id = %s AND platform = 'web'",
            [self.channel_id],
        )
        links = [{"subscription_id": str(row[0]), "external_id": external_id} for row in found]
        self._call("POST", f"/channel/{self.channel_id}/people/devices", {"links": links})

    def receipts(self) -> dict[str, float]:
        """When the device first got each notification: seconds since the epoch, by id."""
        path = f"/subscriptions/{self.device_id}/messages"
        first: dict[str, float] = {}
        for message in self.sandbox.request("GET", path).body["messages"]:
            notification_id = json.loads(message["payload"])["notification_id"]
            first.setdefault(notification_id, timestamp(message["at"]))
        return first

    def processes(self) -> dict[str, int]:
        """The pids of all programs, by name. A restarted program has another pid."""
        children = self.home.read_json("run/children.json")
        return {**self.pids, **{name: pid for name, pid, _ in children}}

    def _call(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Key {self.api_key}"}
        reply = self.service.request(method, path, body, headers)
        if reply.status not in (200, 201, 202):
            raise RuntimeError(f"{method} {path} answered {reply.status}: {reply.body}")
        return reply.body


@contextmanager
def running_system() -> Iterator[System]:
    """Starts everything, waits until it is idle, and stops it at the end."""
    with tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as folder:
        port = own_port()
        environment = {**os.environ, "PUSHSVC_HOME": folder, "PORT": str(port)}
        command = [sys.executable, "-m", "local.run"]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        ) as supervisor:
            try:
                _await_ready(supervisor)
                with _opened(Home(Path(folder)), port, supervisor.pid) as system:
                    time.sleep(_SETTLE_SECONDS)
                    yield system
            finally:
                supervisor.terminate()
                supervisor.wait()


def percentile(values: Sequence[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def report(name: str, seconds: Sequence[float]) -> None:
    """One line: median, 95th percentile and largest, in milliseconds."""
    figures = (median(seconds), percentile(seconds, 95), max(seconds))
    shown = ", ".join(
        f"{label} {1000 * figure:.1f}"
        for label, figure in zip(("median", "p95", "max"), figures, strict=True)
    )
    print(f"{name}: {shown} ms ({len(seconds)} times)")


def timestamp(text: str) -> float:
    """Seconds since the epoch of an ISO 8601 text with an offset."""
    return datetime.fromisoformat(text).timestamp()


def _await_ready(supervisor: "subprocess.Popen[str]") -> None:
    printed = []
    for line in supervisor.stdout or ():
        printed.append(line)
        if line.strip() == _LAST_LINE:
            return
    raise RuntimeError("the service did not start:\n" + "".join(printed))


def _server_pids(home: Home, servers: embedded.Servers) -> dict[str, int]:
    return {
        server.name: int(home.read_json(f"run/{server.name}.json")["pid"])
        for server in servers.servers.values()
    }


@contextmanager
def _opened(home: Home, port: int, supervisor_pid: int) -> Iterator[System]:
    servers = embedded.start(
        home.root,
        postgres=not embedded.is_given("DATABASE_URL"),
        redis=not embedded.is_given("REDIS_URL"),
    )
    addresses = {**os.environ, **servers.environment}
    demo, sandbox_port = home.read_json("demo.json"), home.read_json("run/sandbox.json")["web"]
    try:
        with (
            psycopg.connect(addresses["DATABASE_URL"], autocommit=True) as database,
            redis.Redis.from_url(addresses["REDIS_URL"]) as redis_client,
        ):
            yield System(
                service=Origin("127.0.0.1", port, f"http://127.0.0.1:{port}"),
                sandbox=Origin("127.0.0.1", sandbox_port, f"http://127.0.0.1:{sandbox_port}"),
                channel_id=demo["channel_id"],
                api_key=demo["api_key"],
                device_id=demo["devices"]["web"]["id"],
                database=database,
                redis=redis_client,
                pids={"supervisor": supervisor_pid, **_server_pids(home, servers)},
                home=home,
            )
    finally:
        servers.leave()


# More than a channel may have.
_REPEAT: Final = """
INSERT INTO notifications_app_schedule (id, channel_id, name, is_enabled, send_json, recurrence,
  next_at, disabled_code, changed_by)
SELECT gen_random_uuid(), channel_id, name, TRUE, send_json, recurrence, %(at)s, '', ''
FROM notifications_app_schedule CROSS JOIN generate_series(1, %(times)s) WHERE id = %(made)s
"""
