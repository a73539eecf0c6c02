"""Whether web and worker processes run, with the keys, the code and the time of this process."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from pushsvc.common import fingerprints, worker
from pushsvc.common.findings import Finding, Kind
from pushsvc.common.store import metric_reports
from pushsvc.ops.doctor.database import clock

_SETTINGS: Final = {
    "secret_keys": (
        "SECRET_KEY",
        "One does not accept what the other signs: clicks are not counted, and staff are signed "
        "out.",
    ),
    "credential_keys": (
        "CREDENTIAL_KEYS",
        "One cannot read what the other stores: nothing is sent with it.",
    ),
}


def examine() -> Iterator[Finding]:
    """Yields findings about other processes; none while Redis is away."""
    reported = metric_reports.read()
    if reported and not reported.processes["web"]:
        yield Kind.WEB_MISSING.found()
    yield from _frozen()
    for machine, ahead in sorted(worker.clocks().items()):
        yield from clock(machine, "Redis", ahead)
    own = fingerprints.own()
    for (kind, host, theirs), number in sorted(Counter(metric_reports.reporting()).items()):
        where: dict[str, Any] = {"kind": kind.capitalize(), "host": host, "number": number}
        for name, (setting, harm) in _SETTINGS.items():
            if getattr(theirs, name) != getattr(own, name):
                yield Kind.SETTINGS_DIFFER.found(**where, setting=setting, harm=harm)
        if theirs.code != own.code:
            yield Kind.CODE_DIFFERS.found(**where)


def _frozen() -> Iterator[Finding]:
    """Compares how many processes the workers say they have with how many report. Looks twice,
    because after a start, or after Redis was away, the one may be seen before the other."""
    if _machines_short():
        time.sleep(metric_reports.REPORT_SECONDS + 1)
        for host, number in sorted(_machines_short().items()):
            yield Kind.WORKERS_FROZEN.found(host=host, number=number)


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
