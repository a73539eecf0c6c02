"""The state of the work: workers, beat, queues, breakers, credentials, bounces.

For all channels, with the texts of the console's dashboard."""

from collections.abc import Iterator
from typing import Final

from django.db import Error

from channels_app.models import Channel
from notifications_app.reporting.attention import PARTS
from notifications_app.reporting.concern import Concern
from pushsvc.common.store import sql
from pushsvc.doctor.finding import Finding, Tone
from pushsvc.doctor.statements import first_line, limited

_SUBJECT: Final = "work"


def examine() -> Iterator[Finding]:
    """Runs each part in its own transaction, so that a locked table hides only what is in it."""
    channels = Channel.objects.all()
    is_quiet, errors = True, []
    for part in PARTS:
        try:
            with limited():
                found = list(part(channels, sql.now()))
        except Error as error:
            errors.append(first_line(error))
        else:
            is_quiet = is_quiet and not found
            yield from map(_finding, found)
    if errors:
        title = f"{len(errors)} of {len(PARTS)} checks of the work that goes on failed"
        yield Finding(_SUBJECT, Tone.WARN, title, " ".join(dict.fromkeys(errors)))
    elif is_quiet:
        yield Finding(_SUBJECT, Tone.OK, "Nothing is late or failing")


def _finding(concern: Concern) -> Finding:
    return Finding(_SUBJECT, Tone(concern.tone), _title(concern), _remedy(concern))


def _title(concern: Concern) -> str:
    return f"{concern.title} ({concern.channel_name})" if concern.channel_name else concern.title


def _remedy(concern: Concern) -> str:
    return f"{concern.detail} They said: {concern.quote}" if concern.quote else concern.detail
