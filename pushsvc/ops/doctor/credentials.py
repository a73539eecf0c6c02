"""Stored secrets and VAPID subjects: whether they can be decrypted, are real, and whether providers
accept the credentials. Credentials are checked with a message to a device that does not exist."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from django.conf import settings

from channels_app.models import Channel, ProviderCredential
from channels_app.services import secrets_unreadable
from notifications_app.pipeline.credential_check import credentials_check
from notifications_app.pipeline.destinations import CredentialsMissing, CredentialsUnreadable
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.store.crypto import SecretUnreadable
from pushsvc.ops.doctor.finding import Finding, Tone
from pushsvc.ops.doctor.statements import limited

_SUBJECT: Final = "credentials"
_MISSING: Final = "A key is missing from CREDENTIAL_KEYS. Put it back, or store them again."


def secrets() -> Iterator[Finding]:
    """Decrypts the stored secrets. VAPID keys and identity keys have no provider to ask."""
    with limited():
        unreadable = secrets_unreadable()
    if unreadable:
        title = f"{unreadable} stored secrets cannot be decrypted"
        yield Finding(_SUBJECT, Tone.BAD, title, _MISSING)


def subjects() -> Iterator[Finding]:
    """Finds channels that still have the example as VAPID subject, from before the setting was
    changed. Channels keep theirs."""
    with limited():
        example = Channel.objects.filter(
            web_enabled=True, vapid_subject=settings.DEFAULT_VAPID_SUBJECT
        )
        number, first = example.count(), example.order_by("name").first()
    if first:
        title = f"The VAPID subject of {_channels(first.name, number)} is the example"
        remedy = (
            "Push services write to it before they block a sender. Change it in the channel's "
            "settings to a mailto: or https: address where they reach you."
        )
        yield Finding(_SUBJECT, Tone.WARN, title, remedy)


def _channels(first: str, number: int) -> str:
    return f"{number} channels, of which {first} is the first," if number > 1 else first


def examine() -> Iterator[Finding]:
    stored = ProviderCredential.objects.select_related("channel")
    for credential in stored.order_by("channel__name", "platform"):
        with suppress(CredentialsMissing):  # deleted meanwhile
            yield _tried(credential)


def _tried(credential: ProviderCredential) -> Finding:
    platform = Platform(credential.platform)
    name = f"{PLATFORM_NAMES[platform]} credentials of {credential.channel.name}"
    try:
        checked = credentials_check(channel_id=credential.channel_id, platform=platform)
    except (CredentialsUnreadable, SecretUnreadable):
        return Finding(_SUBJECT, Tone.BAD, f"The {name} cannot be decrypted", _MISSING)
    if checked.is_good:
        return Finding(_SUBJECT, Tone.OK, f"The {name} are accepted")
    said = f"{checked.code}: {checked.detail}".rstrip(": ")
    if checked.is_good is None:
        remedy = f"{said}. Check that this machine reaches the provider, and try again."
        return Finding(_SUBJECT, Tone.WARN, f"The {name} could not be tried", remedy)
    remedy = f"{said}. Correct it at the provider, or store other credentials."
    return Finding(_SUBJECT, Tone.BAD, f"The {name} are refused", remedy)
