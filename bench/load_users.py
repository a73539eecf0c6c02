"""The users of `make load`. Locust runs this file, in its own environment.

Each user makes requests at random times, at its own pace and from its own address. Temporary
refusals (429 and 503 with Retry-After) are counted separately. Every other unexpected answer is a
failure.
"""

import json
import os
import random
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from locust import FastHttpUser, task

_GIVEN = json.loads(Path(os.environ["LOAD_DATA"]).read_text(encoding="utf-8"))
_PACE = float(os.environ["LOAD_PACE"])  # a user's requests a second
_FOR_THE_MOMENT = (429, 503)


class User(FastHttpUser):
    def wait_time(self) -> float:
        """Seconds until the next request, independent of the time of answers. With Locust's
        constant_throughput, all users would be synchronous after their first request."""
        self.next_at += random.expovariate(_PACE)
        return max(0.0, self.next_at - time.monotonic())

    def on_start(self) -> None:
        """Sets headers as for a visitor behind a proxy: see TRUSTED_PROXIES."""
        self.own = {
            "X-Forwarded-For": f"198.18.{random.randrange(256)}.{random.randrange(256)}",
            "X-Channel-ID": _GIVEN["channel_id"],
        }
        self.program = {"Authorization": f"Key {_GIVEN['api_key']}"}
        self.next_at = time.monotonic()
        self.wait()

    @task(8)
    def subscribe_known(self) -> None:
        self.ask("subscribe, known", "POST", "/subscribe", 200, json=random.choice(_GIVEN["known"]))

    @task(2)
    def subscribe_new(self) -> None:
        device = random.choice(_GIVEN["known"])
        device = {**device, "endpoint": f"{device['endpoint']}{uuid.uuid4().hex}"}
        self.ask("subscribe, new", "POST", "/subscribe", 201, json=device)

    @task(6)
    def report(self) -> None:
        event = {"token": random.choice(_GIVEN["tokens"]), "event": "clicked"}
        self.ask("events", "POST", "/events", 204, json={"events": [event]})

    @task(1)
    def send(self) -> None:
        ids = random.sample(_GIVEN["subscription_ids"], 10)
        body = {"body": "load", "subscription_ids": ids}
        self.ask("send to 10", "POST", "/send-notification", 202, json=body, headers=self.program)

    @task(2)
    def list(self) -> None:
        self.ask(
            "list",
            "GET",
            f"/notifications/{_GIVEN['channel_id']}?limit=20",
            200,
            headers=self.program,
        )

    @task(1)
    def read(self) -> None:
        path = f"/notification/{_GIVEN['notification_id']}"
        self.ask("read one", "GET", path, 200, headers=self.program)

    def ask(
        self,
        name: str,
        method: str,
        path: str,
        expected: int,
        *,
        headers: Mapping[str, str] | None = None,
        **body: Any,
    ) -> None:
        all_headers = {**self.own, **(headers or {})}
        with self.client.request(
            method, path, name=name, headers=all_headers, catch_response=True, **body
        ) as answer:
            if answer.status_code == expected:
                answer.success()
            elif answer.status_code in _FOR_THE_MOMENT and answer.headers.get("Retry-After"):
                answer.request_meta["name"] = f"{name}: {answer.status_code}"
                answer.success()
            else:
                answer.failure(f"{answer.status_code} {answer.text[:200]}")
