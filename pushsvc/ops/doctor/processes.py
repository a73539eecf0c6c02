"""Web and worker processes, which report to Redis: whether they run, have the keys and the code of
this process, and the right time."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from pushsvc.common import fingerprints, worker
from pushsvc.common.store import metric_reports
from pushsvc.ops.doctor.database import SLOW_CLOCK_SECONDS, WRONG_CLOCK_SECONDS
from pushsvc.ops.doctor.finding import Finding, Tone

_SAME_SETTINGS: Final = (
    "Give all processes the same settings, and restart them. If they belong to another "
    "installation, give that one a database of Redis of its own. A process that has ended counts "
    "for 15 seconds."
)
_START_WEB: Final = (
    "Clients and staff cannot reach the service; workers go on. Start web. If it runs, its "
    "REDIS_URL names another Redis, or another database of it, than that of this process."
)
_FROZEN: Final = (
    "They are stopped (SIGSTOP, a debugger) or wait for a disk or memory; their parents run. Look "
    "for the states T and D in ps -eo pid,ppid,stat,etime,args there. Let them continue (SIGCONT), "
    "or kill them with SIGKILL: the parent starts others, and nothing is lost."
)
_DIFFERENCES: Final = {
    "secret_keys": (
        Tone.BAD,
        "have another SECRET_KEY",
        "The one does not accept what the other signs: clicks are not counted, and staff are "
        f"signed out. {_SAME_SETTINGS}",
    ),
    "credential_keys": (
        Tone.BAD,
        "have other CREDENTIAL_KEYS",
        f"The one cannot read what the other stores: nothing is sent with it. {_SAME_SETTINGS}",
    ),
    "code": (
        Tone.WARN,
        "run other code than this",
        "During an upgrade, and for 15 seconds after it, that is right. Otherwise put the same "
        "version there, and restart them.",
    ),
}


def examine() -> Iterator[Finding]:
    """Yields findings about other processes; none while Redis is away."""
    reported = metric_reports.read()
    if reported and not reported.processes["web"]:
        yield Finding("processes", Tone.BAD, "No web process is running", _START_WEB)
    yield from _frozen()
    yield from _wrong_clocks()
    own = fingerprints.own()._asdict()
    others = Counter(metric_reports.reporting())
    for name, (tone, what, remedy) in _DIFFERENCES.items():
        for (kind, host, same), number in sorted(others.items()):
            if same._asdict()[name] != own[name]:
                title = f"{kind.capitalize()} processes on {host} {what} ({number})"
                yield Finding("processes", tone, title, remedy)


def _wrong_clocks() -> Iterator[Finding]:
    for machine, ahead in sorted(worker.clocks().items()):
        if abs(ahead) > SLOW_CLOCK_SECONDS:
            tone = Tone.BAD if abs(ahead) > WRONG_CLOCK_SECONDS else Tone.WARN
            title = f"The clocks of {machine} and Redis differ by {abs(ahead):.0f} s"
            yield Finding("processes", tone, title, "Run NTP on both: Google and Apple check it.")


def _frozen() -> Iterator[Finding]:
    """Compares how many processes the workers say they have with how many report. Looks twice,
    because after a start, or after Redis was away, the one may be seen before the other."""
    if _machines_short():
        time.sleep(metric_reports.REPORT_SECONDS + 1)
        for machine, number in sorted(_machines_short().items()):
            title = f"Worker processes on {machine} do not report ({number})"
            yield Finding("processes", Tone.WARN, title, _FROZEN)


def _machines_short() -> Counter[str]:
    """How many worker processes of each machine do not report. Workers may have names that do not
    end with their machine's; they are found only if too few report in all."""
    reports = metric_reports.reporting()
    if not reports:  # Redis is away
        return Counter()
    started = Counter[str]()
    for name, number in worker.announced().items():
        started[name.rpartition("@")[2]] += number
    reporting = Counter(each.host for each in reports if each.kind == "worker")
    return started - reporting if started.total() > reporting.total() else Counter()
