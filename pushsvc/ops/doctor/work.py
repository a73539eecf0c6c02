"""The state of the work: workers, beat, queues, breakers, credentials, bounces.

For all channels, as the console's dashboard shows it, and the stored secrets."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from django.db import Error

from channels_app.models import Channel
from notifications_app.reporting.attention import PARTS, Part
from pushsvc.common.findings import Finding, Kind, good
from pushsvc.common.store import sql
from pushsvc.ops.doctor import credentials
from pushsvc.ops.doctor.statements import first_line, limited

_SECONDS: Final = 6


def examine() -> Iterator[Finding]:
    """Runs each part in its own transaction, so that a locked table hides only what is in it. Ends
    after some seconds if many parts are slow."""
    begun, is_quiet, errors = time.monotonic(), True, []
    for part in (*map(_of_all_channels, PARTS), credentials.secrets, credentials.subjects):
        if time.monotonic() - begun > _SECONDS:
            errors.append("No time was left for the others.")
            break
        try:
            with limited():
                found = list(part())
        except Error as error:
            errors.append(first_line(error))
        else:
            is_quiet = is_quiet and not found
            yield from map(_with_channel, found)
    if errors:
        reasons = " ".join(dict.fromkeys(errors))
        yield Kind.UNEXAMINED.found(what="Some of the work", error=reasons)
    elif is_quiet:
        yield good("work", "Nothing is late or failing")


def _of_all_channels(part: Part) -> Callable[[], Iterable[Finding]]:
    return lambda: part(Channel.objects.all(), sql.now())


def _with_channel(finding: Finding) -> Finding:
    """Names the channel, as the dashboard does beside the title."""
    name = finding.channel_name
    return replace(finding, title=f"{finding.title} ({name})") if name else finding
