"""Whether stored secrets can be decrypted and are valid.

Credentials are checked with a message to a device that does not exist.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from django.conf import settings

from channels_app.models import Channel, ProviderCredential
from channels_app.services import secrets_unreadable
from channels_app.sign_in import two_step
from notifications_app.pipeline.credential_checks import credentials_check
from notifications_app.pipeline.destinations import CredentialsMissing, CredentialsUnreadable
from pushsvc.common.findings import Finding, Kind, Severity, good
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.store.crypto import SecretUnreadable

_NAMED: Final = 5  # secrets; the others are counted


def secrets() -> Iterator[Finding]:
    """Decrypts the stored secrets. No provider can check VAPID keys and identity keys."""
    if found := secrets_unreadable() + two_step.secrets_unreadable():
        names = ", ".join(dict.fromkeys(found[:_NAMED]))
        more = " and more" if len(found) > _NAMED else ""
        yield Kind.SECRETS_UNREADABLE.found(what=f"{len(found)} stored secrets ({names}{more})")


def subjects() -> Iterator[Finding]:
    """Finds channels that still have the example as VAPID subject, from before the setting was
    changed. Channels keep theirs."""
    example = Channel.objects.filter(
        web_enabled=True, vapid_subject=settings.DEFAULT_VAPID_SUBJECT
    ).order_by("name")
    if first := example.first():
        number = example.count()
        many = f"{number} channels, of which {first.name} is the first,"
        yield Kind.VAPID_SUBJECT_EXAMPLE.found(channels=many if number > 1 else first.name)


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
        return Kind.SECRETS_UNREADABLE.found(what=f"The {name}")
    if checked.is_good:
        return good("credentials", f"The {name} are accepted")
    is_refused = checked.is_good is False
    return Kind.CREDENTIALS_REFUSED.found(
        severity=Severity.ERROR if is_refused else Severity.WARNING,
        name=name,
        result="are refused" if is_refused else "could not be tried",
        quote=f"{checked.code}: {checked.detail}".rstrip(": "),
    )
