"""The class of concerns: kind, severity and text."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal
from uuid import UUID

from channels_app.models import Tries


class Kind(StrEnum):
    PAUSED = "paused"
    CREDENTIALS_MISSING = "credentials_missing"
    CREDENTIALS_OLD = "credentials_old"
    API_KEY_ENDS = "api_key_ends"
    BOUNCES = "bounces"
    NEARLY_FULL = "nearly_full"
    QUEUE = "queue"
    UNREACHED = "unreached"
    LATE_START = "late_start"
    BREAKING = "breaking"
    SERVICE_FAILING = "service_failing"
    LIMITED = "limited"
    WORKERS_MISSING = "workers_missing"
    BEAT_MISSING = "beat_missing"
    REDIS_AWAY = "redis_away"


@dataclass(frozen=True)
class Concern:
    """`quote`: a push service's text, shown as a quotation. `since`: when the problem began, if
    known. `tries`: of a paused platform."""

    kind: Kind
    tone: Literal["bad", "warn", "info"]
    title: str
    detail: str
    quote: str = ""
    since: datetime | None = None
    channel_id: UUID | None = None
    channel_name: str = ""
    platform: str = ""
    tries: Tries | None = None
