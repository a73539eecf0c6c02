"""Measures what a message costs pushsvc and its peers, in processor time.

All send to the same devices, with the same keys and the same text, to the same sink. pushsvc's
figure is for all work of one worker process, from rows in the database to recorded outcomes; a peer
only sends. All run once in each round, in turn, so that other load on the machine affects all.
"""

import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from bench.meter import Spent
from bench.peers import PEERS, Missing, Peer
from bench.results import Options, Result, ResultRow, ratio
from bench.service import Sent, Service, running_service
from bench.sink import Sink, find_nginx, running_sink
from bench.work import Work, make_work
from pushsvc.common.platforms import Platform

_UNIT: Final = "CPU-s / 1,000"


def web(options: Options) -> Result:
    return _compare(Platform.WEB, options)


def ios(options: Options) -> Result:
    return _compare(Platform.IOS, options)


def android(options: Options) -> Result:
    return _compare(Platform.ANDROID, options)


def _compare(platform: Platform, options: Options) -> Result:
    with (
        tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as folder,
        running_sink(find_nginx()) as sink,
    ):
        work = make_work(Path(folder), sink, options.messages)
        result = Result(remarks=[f"Sink: {sink.program}."])
        peers = _present(platform, work, sink, result)
        with running_service(platform, work, sink) as service:
            service.spend()  # opens connections and prepares statements
            ours, theirs = _rounds(service, peers, work, sink, options, result)
    result.rows = [
        *_our_rows(platform, ours, options.messages),
        *_peer_rows(ours, theirs, options.messages),
    ]
    return result


def _present(platform: Platform, work: Work, sink: Sink, result: Result) -> list[Peer]:
    """The peers that run on this machine, each tried with one message. A remark names the
    others."""
    present = []
    for peer in PEERS[platform]:
        try:
            peer.spend(work, sink, 1, 1)
        except Missing as missing:
            result.remarks.append(f"{peer.shown} was skipped: {missing}.")
        else:
            present.append(peer)
    return present


def _rounds(
    service: Service, peers: list[Peer], work: Work, sink: Sink, options: Options, result: Result
) -> tuple[list[Sent], dict[Peer, list[Spent]]]:
    ours: list[Sent] = []
    theirs: dict[Peer, list[Spent]] = {peer: [] for peer in peers}
    for _ in range(options.rounds):
        with result.load.round():
            with sink.expecting(options.messages):
                ours.append(service.spend())
            for peer, spent in theirs.items():
                spent.append(peer.spend(work, sink, options.messages, options.in_flight))
    return ours, theirs


def _our_rows(platform: Platform, ours: list[Sent], count: int) -> list[ResultRow]:
    def row(what: str, spent: list[Spent], note: str = "") -> ResultRow:
        return ResultRow(what, _UNIT, _cpu(spent, count), note=note)

    own = [sent.worker for sent in ours]
    return [
        row(f"pushsvc, one worker-{platform} process", own, _rate(own, count)),
        row("PostgreSQL meanwhile", [sent.database for sent in ours]),
        row("worker-plan meanwhile", [sent.planner for sent in ours]),
    ]


def _peer_rows(ours: list[Sent], theirs: dict[Peer, list[Spent]], count: int) -> list[ResultRow]:
    rows = []
    for peer, spent in theirs.items():
        times = ratio([mine.worker.cpu for mine in ours], [its.cpu for its in spent])
        name = f"{peer.shown} {peer.version}"
        rows.append(
            ResultRow(name, _UNIT, _cpu(spent, count), times, peer.aim, _rate(spent, count))
        )
    return rows


def _cpu(spent: list[Spent], count: int) -> list[float]:
    return [1000 * each.cpu / count for each in spent]


def _rate(spent: list[Spent], count: int) -> str:
    return f"{count / median(each.elapsed for each in spent):,.0f} messages / s"
