"""`make load`: mixed requests at a set rate, then at twice what the service can do, then as before.

    make load                                    # 5 minutes at 60 requests a second
    make load ARGS="--rate 100 --seconds 60"

Prints latencies by kind of request, the service's memory and its growth, and the answers of
`/healthz` and `/readyz`. Then it prints what is wrong, and exits with 1 if anything is:

- an answer that was not expected and is no refusal (429 or 503 with Retry-After);
- a health check that failed;
- a refusal at the set rate, before or after the overload, or fewer answers after it;
- an overload that is not refused;
- a program of pushsvc whose memory grows. PostgreSQL and the sandbox do not count: the one fills
  its caches, and the other keeps the messages.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.machine import moment
from bench.meter import Load
from bench.processes import CHECKOUT
from bench.system import System, running_system
from bench.watching import Watch, watching

_LOCUST: Final = CHECKOUT / ".venv" / "load" / "bin" / "locust"
_USERS_FILE: Final = CHECKOUT / "bench" / "load_users.py"
_DEVICES: Final = 200
_USERS: Final = 200
_USERS_OF_AN_OVERLOAD: Final = 4_000  # more than a web process lets wait
_AS_FAST_AS_POSSIBLE: Final = 1_000_000.0
_PROBE_SECONDS: Final = 20
_RECOVERED: Final = 0.9  # of what was served before the overload
_OURS: Final = ("web", "worker-", "beat")
_MOST_GROWTH: Final = 2.0  # MB a minute, in the later half of the first stage
_LONG: Final = 240  # seconds; a shorter stage is still warming up


@dataclass(frozen=True)
class Answers:
    """The answers to one kind of request. `times`: how many answers took how many milliseconds."""

    name: str
    count: int
    failures: int
    times: dict[int, int]

    @property
    def is_refusal(self) -> bool:
        return self.name.endswith((": 429", ": 503"))

    def percentile(self, percent: float) -> int:
        """The percentile of the times in milliseconds."""
        wanted, seen = self.count * percent / 100, 0
        for milliseconds in sorted(self.times):
            seen += self.times[milliseconds]
            if seen >= wanted:
                break
        return milliseconds


@dataclass(frozen=True)
class Stage:
    name: str
    seconds: int
    answers: Sequence[Answers]
    watch: Watch

    @property
    def served(self) -> float:
        """Answers a second, without refusals."""
        return sum(each.count for each in self.answers if not each.is_refusal) / self.seconds

    @property
    def failures(self) -> int:
        return sum(each.failures for each in self.answers)

    @property
    def refusals(self) -> int:
        return sum(each.count for each in self.answers if each.is_refusal)


def main() -> None:
    options = _options()
    os.environ["TRUSTED_PROXIES"] = "1"  # so that each user has its own address
    load = Load()
    with running_system() as system, tempfile.TemporaryDirectory() as folder, load.round():
        data = Path(folder) / "data.json"
        data.write_text(json.dumps(_prepared(system)), encoding="utf-8")

        def stage(name: str, seconds: int, rate: float, users: int = _USERS) -> Stage:
            with watching(system) as watch:
                answers = _asked(system, data, seconds, rate, users)
            found = Stage(name, seconds, answers, watch)
            _print(found)
            return found

        print(f"make load, {moment()}\n")
        steady = stage(f"{options.rate} a second", options.seconds, options.rate)
        most = stage("as many as it can", _PROBE_SECONDS, _AS_FAST_AS_POSSIBLE)
        rate = 2 * most.served
        name = f"{rate:.0f} a second, twice that"
        twice = stage(name, options.overload_seconds, rate, _USERS_OF_AN_OVERLOAD)
        after = stage(f"{options.rate} a second again", options.overload_seconds, options.rate)
    print(load)
    wrong = [*_wrong_anywhere(steady, most, twice, after), *_wrong_about(steady, twice, after)]
    print("\n".join(wrong or ["Nothing was wrong."]))
    sys.exit(1 if wrong else 0)


def _wrong_anywhere(*stages: Stage) -> Iterator[str]:
    for stage in stages:
        if stage.failures:
            yield f"{stage.name}: {stage.failures} answers were wrong."
        if stage.watch.unhealthy:
            yield f"{stage.name}: {stage.watch.unhealthy} health checks failed."


def _wrong_about(steady: Stage, twice: Stage, after: Stage) -> Iterator[str]:
    for stage in (steady, after):
        if stage.refusals:
            yield f"{stage.name}: {stage.refusals} requests were refused."
    if not twice.refusals:
        yield "The overload was not refused, so it was none."
    if after.served < _RECOVERED * steady.served:
        yield f"After the overload, {after.served:.0f} a second were served."
    for name, memory in steady.watch.memory.items():
        if name.startswith(_OURS) and memory.growth > _MOST_GROWTH and steady.seconds >= _LONG:
            yield f"The memory of {name} grew by {memory.growth:.2f} MB a minute."


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rate", type=int, default=60, help="requests a second")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--overload-seconds", type=int, default=60)
    return parser.parse_args()


def _prepared(system: System) -> dict[str, Any]:
    """Creates what the users need: subscribed devices, and tokens of messages that they got."""
    system.database.execute(
        "UPDATE channels_app_channel"
        " SET sends_per_second = 1000000, subscribes_per_minute = 1000000"
    )
    made = system.sandbox.request("POST", "/subscriptions", {"count": _DEVICES})
    devices: list[dict[str, Any]] = made.body["subscriptions"]
    headers = {"X-Channel-ID": system.channel_id}
    ids = [
        system.service.request("POST", "/subscribe", each, headers).body["subscriptionId"]
        for each in devices
    ]
    notification_id = system.send(target_platforms=["web"])
    system.wait_sent(notification_id)
    return {
        "channel_id": system.channel_id,
        "api_key": system.api_key,
        "notification_id": notification_id,
        "known": [{"endpoint": each["endpoint"], "keys": each["keys"]} for each in devices],
        "subscription_ids": ids,
        "tokens": [_token(system, each["id"]) for each in devices],
    }


def _token(system: System, device_id: str) -> str:
    """The tracking token of the message that the device got."""
    messages = system.sandbox.request("GET", f"/subscriptions/{device_id}/messages").body
    return str(json.loads(messages["messages"][0]["payload"])["token"])


def _asked(system: System, data: Path, seconds: int, rate: float, users: int) -> list[Answers]:
    """Lets the users make requests, and returns the answers by kind."""
    environment = {
        **os.environ,
        "LOAD_DATA": str(data),
        "LOAD_PACE": str(rate / users),
    }
    command = [_LOCUST, "--locustfile", _USERS_FILE, "--host", system.service.public_url]
    command += ["--headless", "--json", "--users", users, "--spawn-rate", users]
    command += ["--run-time", f"{seconds}s", "--stop-timeout", "30s", "--exit-code-on-error", "0"]
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    return [_answers(each) for each in json.loads(done.stdout)]


def _answers(shown: dict[str, Any]) -> Answers:
    times = {round(float(ms)): count for ms, count in shown["response_times"].items()}
    return Answers(shown["name"], shown["num_requests"], shown["num_failures"], times)


def _print(stage: Stage) -> None:
    print(f"## {stage.name}, for {stage.seconds} s\n")
    print("| answers | count | failures | p50 ms | p95 ms | p99 ms |\n|---|--:|--:|--:|--:|--:|")
    for each in sorted(stage.answers, key=lambda answers: answers.name):
        figures = " | ".join(str(each.percentile(percent)) for percent in (50, 95, 99))
        print(f"| {each.name} | {each.count} | {each.failures} | {figures} |")
    print(f"\n{stage.served:.0f} a second were served, {stage.refusals} refused.\n")
    print(f"{stage.watch}\n", flush=True)


if __name__ == "__main__":
    main()
