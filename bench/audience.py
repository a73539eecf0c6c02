"""Whether a worker needs more memory for a larger audience.

Once a channel of 1,000 gets several notifications, once a channel with the whole audience gets one,
until the worker has sent the same number of messages. The worker is new each time. The figure is
the largest memory (PSS) of its process that delivers, and of the planner's process.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from bench import filling
from bench.database import own_database
from bench.meter import proportional_memory
from bench.processes import Worker, running_beat, running_worker
from bench.results import Options, Result, ResultRow
from bench.service import make_channel, send, sink_settings
from bench.sink import Sink, find_nginx, running_sink
from bench.work import make_work
from pushsvc.common.platforms import Platform

_PLATFORM: Final = Platform.ANDROID
_SMALL: Final = 1_000
_LOOK_SECONDS: Final = 0.1


def measure(options: Options) -> Result:
    small, large = min(_SMALL, options.recipients), options.recipients
    result = Result(remarks=[f"{options.messages:,} messages to each, Android."])
    peaks: dict[tuple[str, int], list[float]] = {}
    with _running(small, large) as (sink, keys):
        for _ in range(options.rounds):
            with result.load.round():
                for size, key in keys.items():
                    for name, peak in _peaks(sink, key, size, options.messages).items():
                        peaks.setdefault((name, size), []).append(peak)
    for name in ("worker-android", "worker-plan"):
        result.rows += _rows(name, small, large, peaks)
    return result


@contextmanager
def _running(*sizes: int) -> Iterator[tuple[Sink, dict[int, str]]]:
    """The sink, and an API key of a channel of each size."""
    with tempfile.TemporaryDirectory() as folder, running_sink(find_nginx()) as sink:
        work = make_work(Path(folder), sink, 1)
        with own_database(durable=False, **sink_settings(sink)), running_beat():
            keys = {}
            for size in sizes:
                channel, keys[size] = make_channel(_PLATFORM, work)
                filling.fill(channel, size, 0, platforms=[_PLATFORM], expired=size + 1)
            yield sink, keys


def _rows(
    name: str, small: int, large: int, peaks: dict[tuple[str, int], list[float]]
) -> list[ResultRow]:
    ratio = median(peaks[name, large]) / median(peaks[name, small])
    return [
        ResultRow(f"{name}, audience of {small:,}", "MB", peaks[name, small]),
        ResultRow(f"{name}, audience of {large:,}", "MB", peaks[name, large], ratio, "1.00"),
    ]


def _peaks(sink: Sink, key: str, size: int, messages: int) -> dict[str, float]:
    """The largest memory of each worker, while `messages` are sent to an audience of `size`."""
    end = sink.count + messages
    with running_worker("worker-plan") as planner, running_worker(f"worker-{_PLATFORM}") as sender:
        peaks = dict.fromkeys(("worker-plan", f"worker-{_PLATFORM}"), 0.0)
        asked = sink.count
        while sink.count < end:
            if asked <= sink.count < end:
                asked = sink.count + size
                send(key, _PLATFORM)
            for name, worker in (("worker-plan", planner), (f"worker-{_PLATFORM}", sender)):
                peaks[name] = max(peaks[name], _pool_memory(worker))
            time.sleep(_LOOK_SECONDS)
    filling.forget_notifications()
    return peaks


def _pool_memory(worker: Worker) -> float:
    return max(proportional_memory(pid) for pid in worker.pool)
