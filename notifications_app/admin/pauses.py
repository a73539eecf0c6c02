"""The target platforms whose recipients would wait, for composing and a notification's page."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from channels_app.models import ProviderCredential, Tries
from channels_app.selectors import channel_credentials
from notifications_app.reporting.bounce_reasons import words_for
from pushsvc.common.platforms import PLATFORM_NAMES, Platform


@dataclass(frozen=True, slots=True)
class Pause:
    """`detail`: the push service's answer; "" if no credentials are stored. `tries`: None then."""

    platform: Platform
    title: str
    meaning: str = ""
    detail: str = ""
    tries: Tries | None = None

    @property
    def name(self) -> str:
        return PLATFORM_NAMES[self.platform]


def pauses_of(channel_id: UUID, platforms: Iterable[str]) -> list[Pause]:
    """The platforms whose credentials are missing or refused."""
    asked = [Platform(name) for name in platforms if name != Platform.WEB]
    stored = channel_credentials(channel_id) if asked else {}
    found = [_pause(platform, stored.get(platform)) for platform in asked]
    return [pause for pause in found if pause]


def _pause(platform: Platform, credential: ProviderCredential | None) -> Pause | None:
    if credential is None:
        return Pause(platform, "no credentials are stored")
    if credential.paused_at is None:
        return None
    words = words_for(platform, credential.paused_code)
    detail, tries = credential.paused_detail, credential.tries
    return Pause(platform, words.title, words.meaning, detail, tries)
