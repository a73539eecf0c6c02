"""The state of the work: workers, beat, queues, breakers, credentials, bounces.

For all channels, with the texts of the console's dashboard."""

from collections.abc import Iterator
from typing import Final

from channels_app.models import Channel
from notifications_app.reporting.attention import concerns
from notifications_app.reporting.concern import Concern
from pushsvc.common.store import sql
from pushsvc.doctor.finding import Finding, Tone
from pushsvc.doctor.statements import limited

_SUBJECT: Final = "work"


def examine() -> Iterator[Finding]:
    channels = Channel.objects.all()
    with limited():
        found = concerns(channels, now=sql.now())
        number = channels.count()
    for concern in found:
        yield Finding(_SUBJECT, Tone(concern.tone), _title(concern), _remedy(concern))
    if not found:
        yield Finding(_SUBJECT, Tone.OK, f"Nothing is late or failing ({number} channels)")


def _title(concern: Concern) -> str:
    return f"{concern.title} ({concern.channel_name})" if concern.channel_name else concern.title


def _remedy(concern: Concern) -> str:
    return f"{concern.detail} They said: {concern.quote}" if concern.quote else concern.detail
