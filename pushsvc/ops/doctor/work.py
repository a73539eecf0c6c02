"""The state of the work: workers, beat, queues, breakers, credentials, bounces.

For all channels, with the texts of the console's dashboard."""

import time
from collections.abc import Iterator
from typing import Final

from django.db import Error

from channels_app.models import Channel
from notifications_app.reporting.attention import PARTS
from notifications_app.reporting.concern import Concern
from pushsvc.common.store import sql
from pushsvc.ops.doctor.finding import Finding, Tone
from pushsvc.ops.doctor.statements import first_line, limited

_SUBJECT: Final = "work"
_SECONDS: Final = 6


def examine() -> Iterator[Finding]:
    """Runs each part in its own transaction, so that a locked table hides only what is in it. Ends
    after some seconds if many parts are slow."""
    channels, begun = Channel.objects.all(), time.monotonic()
    is_quiet, errors = True, []
    for part in PARTS:
        if time.monotonic() - begun > _SECONDS:
            errors.append("No time was left for the others.")
            break
        try:
            with limited():
                found = list(part(channels, sql.now()))
        except Error as error:
            errors.append(first_line(error))
        else:
            is_quiet = is_quiet and not found
            yield from map(_finding, found)
    if errors:
        remedy = (
            f"{' '.join(dict.fromkeys(errors))} The lines about the database say why. Then run the "
            "doctor again."
        )
        yield Finding(_SUBJECT, Tone.WARN, "Some of the work could not be examined", remedy)
    elif is_quiet:
        yield Finding(_SUBJECT, Tone.OK, "Nothing is late or failing")


def _finding(concern: Concern) -> Finding:
    return Finding(_SUBJECT, Tone(concern.tone), _title(concern), _remedy(concern))


def _title(concern: Concern) -> str:
    return f"{concern.title} ({concern.channel_name})" if concern.channel_name else concern.title


def _remedy(concern: Concern) -> str:
    return f"{concern.detail} They said: {concern.quote}" if concern.quote else concern.detail
