"""The state of the work: workers, beat, queues, breakers, credentials, bounces.

For all channels, with the texts of the console's dashboard."""

from collections.abc import Iterator
from typing import Final

from django.db import transaction

from channels_app.models import Channel
from notifications_app.reporting.attention import concerns
from notifications_app.reporting.concern import Concern
from pushsvc.common.store import sql
from pushsvc.doctor.database import limit_statements
from pushsvc.doctor.finding import Finding, Tone

_SUBJECT: Final = "work"


def examine() -> Iterator[Finding]:
    channels = Channel.objects.all()
    with transaction.atomic():  # its own, so that a failed statement ends nothing else
        limit_statements()
        found = concerns(channels, now=sql.now())
    for concern in found:
        yield Finding(_SUBJECT, Tone(concern.tone), _title(concern), _remedy(concern))
    if not found:
        yield Finding(
            _SUBJECT, Tone.OK, f"Nothing is late or failing ({channels.count()} channels)"
        )


def _title(concern: Concern) -> str:
    return f"{concern.title} ({concern.channel_name})" if concern.channel_name else concern.title


def _remedy(concern: Concern) -> str:
    return f"{concern.detail} They said: {concern.quote}" if concern.quote else concern.detail
