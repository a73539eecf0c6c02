"""Compares the cost of a send whose texts differ by recipient with that of a plain send.

Both go to the same devices through one worker process, in turn in each round. iOS has the least
other work for a message, so that the cost of texts shows most.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.results import Options, Result, ResultRow, ratio
from bench.service import Sent, running_service
from bench.sink import find_nginx, running_sink
from bench.work import make_work
from pushsvc.common.platforms import Platform


def measure_beside_plain(
    options: Options,
    prepare: Callable[[], None],
    what: str,
    aim: str,
    *,
    platform: Platform = Platform.IOS,
    meanwhile: Callable[[str, str], None] | None = None,
    **fields: object,
) -> Result:
    """Measures both sends. `prepare` changes the subscriptions. `fields`: the additional fields of
    the send that is compared with a plain one; `meanwhile`: what is done during it, as in
    Service.spend."""
    with (
        tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as folder,
        running_sink(find_nginx()) as sink,
    ):
        work = make_work(Path(folder), sink, options.messages)
        result = Result(remarks=[f"Sink: {sink.program}."])
        with running_service(platform, work, sink) as service:
            prepare()
            service.spend()  # opens connections and prepares statements of both kinds
            service.spend(meanwhile=meanwhile, **fields)
            plain: list[Sent] = []
            other: list[Sent] = []
            for _ in range(options.rounds):
                with result.load.round():
                    plain.append(service.spend())
                    other.append(service.spend(meanwhile=meanwhile, **fields))
    speed = ratio([each.worker.cpu for each in plain], [each.worker.cpu for each in other])
    result.rows = [
        ResultRow("one text", "CPU-s / 1,000", _for_each(plain, options), None, ""),
        ResultRow(what, "CPU-s / 1,000", _for_each(other, options), speed, aim),
    ]
    return result


def _for_each(sent: list[Sent], options: Options) -> list[float]:
    return [1000 * each.worker.cpu / options.messages for each in sent]
