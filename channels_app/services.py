"""Creates and changes channels, their API keys, VAPID keys and credentials."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.db import transaction
from django.db.models import F, Model, Q
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit, keys
from channels_app.feeds import EventKind, message_add
from channels_app.models import (
    Account,
    ApiKey,
    Channel,
    Identity,
    IdentityKey,
    ProviderCredential,
    Scope,
    VapidKey,
    Webhook,
)
from channels_app.provider_credentials import (
    ApnsKey,
    ServiceAccount,
    is_vapid_subject,
    parse_apns_key,
    parse_service_account,
    secret_json,
)
from channels_app.selectors import FoundKey, current_vapid_key, recent_forget
from pushsvc.common import base64url
from pushsvc.common.errors import Conflict, FieldError, Invalid, Outdated
from pushsvc.common.links import LinkKind, is_link
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import decrypt, encrypt, is_current, is_readable
from pushsvc.common.texts import later

DEFAULT_ACCOUNT = "default"
MOST_API_KEYS: Final = 100  # of a channel, in use
MOST_ENDED_API_KEYS: Final = 1_000  # that are kept, revoked or expired
MOST_VAPID_KEYS: Final = 100  # of a channel, retired ones included
_MAX_URL: Final = 2_000
_STORED: Final = "credentials_stored"  # why a platform resumed, for webhooks
# A channel's own limits, and the corresponding settings of the installation.
_LIMITS: Final = {
    "sends_per_second": "SENDS_PER_SECOND",
    "subscribes_per_minute": "SUBSCRIBES_PER_MINUTE",
    "max_subscriptions": "SUBSCRIPTIONS_PER_CHANNEL",
}
_SECRETS: Final[Sequence[tuple[type[Model], str]]] = (
    (VapidKey, "private_key_encrypted"),
    (ProviderCredential, "secret_encrypted"),
    (IdentityKey, "secret_encrypted"),
    (Webhook, "secret_encrypted"),
    (Webhook, "old_secret_encrypted"),
)


class TooManyChannels(Conflict):
    """The account has CHANNELS_PER_ACCOUNT channels."""

    code = "too_many_channels"
    title = "Too many channels"


class TooManyApiKeys(Conflict):
    """The channel has MOST_API_KEYS keys in use."""

    code = "too_many_api_keys"
    title = "Too many API keys"
    detail = later(
        "The channel has %(most)s API keys in use. Revoke one first.", most=MOST_API_KEYS
    )


class TooManyVapidKeys(Conflict):
    """The channel has MOST_VAPID_KEYS keys. Retired keys are kept, because they serve their
    subscriptions."""

    code = "too_many_vapid_keys"
    title = "Too many VAPID keys"
    detail = later(
        "The channel has %(most)s web push keys and cannot get another one.", most=MOST_VAPID_KEYS
    )


@transaction.atomic
def channel_create(
    *,
    name: str,
    vapid_subject: str | None = None,
    site_url: str = "",
    account: Account | None = None,
    may_exceed: bool = True,
) -> Channel:
    """Creates a channel with its first VAPID key, and with web enabled. Raises Invalid for a bad
    name, subject or URL, and TooManyChannels unless it `may_exceed` CHANNELS_PER_ACCOUNT.

    Without `account` it belongs to the account `default`, which is created when first needed.
    """
    subject = settings.VAPID_SUBJECT if vapid_subject is None else vapid_subject
    _check_channel(name, subject, site_url)
    if account is None:
        account, _ = Account.objects.get_or_create(name=DEFAULT_ACCOUNT)
    if not may_exceed:
        _take_place(account)
    channel = Channel.objects.create(
        account=account, name=name, vapid_subject=subject, site_url=site_url
    )
    audit.record(channel, audit.Action.CREATE, after=audit.fields_of(channel))
    _vapid_key_create(channel)
    return channel


@transaction.atomic
def channel_update(
    *,
    channel_id: UUID,
    name: str,
    vapid_subject: str,
    site_url: str,
    web_click: str,
    enabled: Sequence[str],
    sends_per_second: int | None,
    subscribes_per_minute: int | None,
    max_subscriptions: int | None,
    identity: str,
    may_raise: bool,
) -> Channel:
    """Changes the channel's settings. If a limit is None, the installation's setting applies. A
    limit above both the installation's and the channel's current limit requires `may_raise`,
    because it protects resources that channels share.

    Platforms that are not `enabled` accept no subscriptions and no notifications; sends in progress
    continue. Safe to repeat. Raises Invalid for a bad name, subject or URL, a limit that is too
    high, or a platform without credentials.
    """
    _check_channel(name, vapid_subject, site_url)
    channel = Channel.objects.select_for_update(no_key=True).get(pk=channel_id)
    before = audit.fields_of(channel)
    _check_enabled(channel, enabled)
    limits = {
        "sends_per_second": sends_per_second,
        "subscribes_per_minute": subscribes_per_minute,
        "max_subscriptions": max_subscriptions,
    }
    if not may_raise:
        _check_limits(channel, limits)
    values = {
        "name": name,
        "vapid_subject": vapid_subject,
        "site_url": site_url,
        "web_click": web_click,
        **limits,
        "identity": Identity(identity),
        **{f"{platform}_enabled": platform in enabled for platform in Platform},
    }
    for field, value in values.items():
        setattr(channel, field, value)
    channel.save(update_fields=list(values))
    audit.record(channel, audit.Action.UPDATE, before, audit.fields_of(channel))
    transaction.on_commit(recent_forget)
    return channel


@transaction.atomic
def channel_set_prompt(*, channel_id: UUID, is_on: bool, options: dict[str, Any]) -> None:
    """Sets the options of prompt.mjs for sites that use those of the console, and whether they show
    a prompt. Safe to repeat."""
    channel = Channel.objects.select_for_update(no_key=True).get(pk=channel_id)
    before = audit.fields_of(channel)
    channel.prompt = {"isOn": is_on, **options}
    channel.save(update_fields=["prompt"])
    audit.record(channel, audit.Action.UPDATE, before, audit.fields_of(channel))
    transaction.on_commit(recent_forget)


def _take_place(account: Account) -> None:
    """Locks the account, so that no other channel is added before the transaction ends. Raises
    TooManyChannels."""
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    most = settings.CHANNELS_PER_ACCOUNT
    if Channel.objects.filter(account=account).count() >= most:
        raise TooManyChannels(
            gettext("The account has %(most)s channels. A superuser can add more.")
            % {"most": f"{most:,}"}
        )


def _check_enabled(channel: Channel, enabled: Sequence[str]) -> None:
    stored = ProviderCredential.objects.filter(channel=channel).values_list("platform", flat=True)
    for platform in set(enabled) - {Platform.WEB.value, *stored}:
        detail = gettext("%(platform)s has no credentials yet. Store them first.") % {
            "platform": platform
        }
        raise Invalid([FieldError("enabled", "not_a_choice", detail)])


def _check_limits(channel: Channel, limits: Mapping[str, int | None]) -> None:
    errors = []
    for name, wanted in limits.items():
        most = max(getattr(settings, _LIMITS[name]), getattr(channel, name) or 0)
        if wanted is not None and wanted > most:
            detail = gettext("Only a superuser can set more than %(most)s.") % {"most": f"{most:,}"}
            errors.append(FieldError(name, "out_of_range", detail))
    if errors:
        raise Invalid(errors)


def _check_channel(name: str, subject: str, site_url: str) -> None:
    errors = []
    if not name.strip() or len(name) > 200 or "\x00" in name:
        errors.append(
            FieldError(
                "name", "malformed", gettext("Must have 1 to %(most)s characters.") % {"most": 200}
            )
        )
    if not is_vapid_subject(subject):
        detail = gettext("Must be mailto: or https: with a real domain. Apple refuses others.")
        errors.append(FieldError("vapid_subject", "malformed", detail))
    if site_url and not is_link(site_url, LinkKind.WEB):
        errors.append(FieldError("site_url", "not_a_url", gettext(LinkKind.WEB.value)))
    elif len(site_url) > _MAX_URL:
        detail = gettext("Must be at most %(most)s characters long.") % {"most": _MAX_URL}
        errors.append(FieldError("site_url", "too_long", detail))
    if errors:
        raise Invalid(errors)


@transaction.atomic
def api_key_issue(
    *,
    channel: Channel,
    name: str = "",
    scopes: Sequence[str] = tuple(Scope.values),
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Creates a key. Returns it with its text, which is not stored and cannot be shown again.
    Raises Invalid and TooManyApiKeys."""
    _check_api_key(name, scopes)
    _lock(channel)
    own = ApiKey.objects.filter(channel=channel)
    ended = Q(revoked_at__isnull=False) | Q(expires_at__isnull=False, expires_at__lte=Now())
    if own.exclude(ended).count() >= MOST_API_KEYS:
        raise TooManyApiKeys
    # Deleted keys remain in the audit log.
    newest_first = own.filter(ended).order_by("-created_at", "-pk").values_list("pk", flat=True)
    own.filter(pk__in=list(newest_first[MOST_ENDED_API_KEYS:])).delete()
    text, presented = keys.generate()
    api_key = ApiKey.objects.create(
        channel=channel,
        public_id=presented.public_id,
        secret_sha256=presented.sha256,
        name=name,
        scopes=[scope for scope in Scope.values if scope in scopes],
        expires_at=expires_at,
    )
    note = "An API key was issued."
    audit.record(api_key, audit.Action.CREATE, after=audit.fields_of(api_key), note=note)
    return api_key, text


def _check_api_key(name: str, scopes: Sequence[str]) -> None:
    errors = []
    if len(name) > 200 or "\x00" in name:
        errors.append(
            FieldError(
                "name",
                "malformed",
                gettext("Must have at most %(most)s characters.") % {"most": 200},
            )
        )
    if not scopes or not set(scopes) <= set(Scope.values):
        detail = gettext("Must be some of: %(values)s.") % {"values": ", ".join(Scope.values)}
        errors.append(FieldError("scopes", "not_a_choice", detail))
    if errors:
        raise Invalid(errors)


@transaction.atomic
def api_key_revoke(*, api_key: ApiKey) -> bool:
    """Revokes the key, from the next request on. Returns False if it was already revoked."""
    live = ApiKey.objects.filter(pk=api_key.pk, revoked_at__isnull=True)
    if not live.update(revoked_at=Now()):
        return False
    after = {"revoked_at": ApiKey.objects.get(pk=api_key.pk).revoked_at}
    audit.record(api_key, audit.Action.UPDATE, after=after, note="The API key was revoked.")
    transaction.on_commit(recent_forget)
    return True


def api_key_note_use(found: FoundKey) -> None:
    """Writes `last_used_at`, at most once a minute, even if several processes try at once."""
    if found.is_use_due:
        seen = ApiKey.objects.filter(pk=found.api_key.pk, last_used_at=found.api_key.last_used_at)
        seen.update(last_used_at=Now())
        found.api_key.last_used_at = found.read_at  # other requests may hold the same row


@transaction.atomic
def vapid_key_rotate(*, channel: Channel, seen: str | None = None) -> VapidKey:
    """Creates a new key pair for new subscriptions. The old key still serves its subscriptions.
    Raises TooManyVapidKeys, and Outdated if `seen`, a public key, is not the current one."""
    _lock(channel)
    if seen is not None and seen != current_vapid_key(channel).public_key:
        raise Outdated
    if VapidKey.objects.filter(channel=channel).count() >= MOST_VAPID_KEYS:
        raise TooManyVapidKeys
    current = VapidKey.objects.filter(channel=channel, retired_at__isnull=True)
    before = current.values("public_key").first()
    current.update(retired_at=Now())
    key = _vapid_key_create(channel)
    after = {"public_key": key.public_key}
    audit.record(key, audit.Action.UPDATE, before, after, note="The VAPID key was rotated.")
    return key


def _vapid_key_create(channel: Channel) -> VapidKey:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    private = key.private_numbers().private_value.to_bytes(32, "big")
    return VapidKey.objects.create(
        channel=channel,
        public_key=base64url.encode(public),
        private_key_encrypted=encrypt(base64url.encode(private)),
    )


@transaction.atomic
def provider_credentials_store(
    *,
    channel: Channel,
    fcm_service_account: str | None = None,
    apns_key: str | None = None,
    apns_entries: dict[str, str] | None = None,
) -> None:
    """Checks and stores the given credentials, all or none. Other platforms do not change.

    Storing enables the platform, raises the credentials' version and ends the platform's pause.
    Raises Invalid for credentials that cannot be used (channels_app/provider_credentials.py).
    """
    _lock(channel)
    if fcm_service_account is not None:
        _credential_store(channel, Platform.ANDROID, parse_service_account(fcm_service_account))
    if apns_key is not None:
        stored = ProviderCredential.objects.filter(channel=channel, platform=Platform.IOS).first()
        facts = stored.facts if stored else {}
        parsed = parse_apns_key(apns_key, entries=apns_entries or {}, stored=facts)
        _credential_store(channel, Platform.IOS, parsed)
    transaction.on_commit(recent_forget)


def _credential_store(
    channel: Channel, platform: Platform, credential: ServiceAccount | ApnsKey
) -> None:
    new = {
        "secret_encrypted": encrypt(secret_json(credential)),
        "facts": credential.facts,
        "updated_at": Now(),
        "paused_at": None,
        "paused_code": "",
        "paused_detail": "",
        "retried_at": None,
        "checked_at": None,
        "is_accepted": None,
        "checked_words": "",
    }
    own = ProviderCredential.objects.filter(channel=channel, platform=platform)
    stored = own.select_for_update(no_key=True).first()
    if not own.update(version=F("version") + 1, **new):
        ProviderCredential.objects.create(channel=channel, platform=platform, **new)
    Channel.objects.filter(pk=channel.pk).update(**{f"{platform.value}_enabled": True})
    if stored and stored.paused_at:
        message_add(
            EventKind.RESUMED,
            channel.pk,
            platform=platform,
            code=_STORED,
            detail="New credentials were stored.",
        )
    after = own.get()
    audit.record(
        after,
        audit.Action.UPDATE if stored else audit.Action.CREATE,
        audit.fields_of(stored) if stored else None,
        audit.fields_of(after),
        note=f"Credentials for {platform} were stored.",
    )


def _lock(channel: Channel) -> None:
    Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)


def secrets_reencrypt() -> int:
    """Encrypts every secret with the first key of CREDENTIAL_KEYS, except `secrets_unreadable`.
    Returns how many it changed. Safe to repeat."""
    return sum(_reencrypt(model, field) for model, field in _SECRETS)


def secrets_unreadable() -> list[str]:
    """Names the stored secrets that no key of CREDENTIAL_KEYS decrypts."""
    return [
        f"{model._meta.verbose_name} of {channel}"
        for model, field in _SECRETS
        for token, channel in model._default_manager.exclude(**{field: ""})
        .order_by("channel__name", "pk")
        .values_list(field, "channel__name")
        if not is_readable(token)
    ]


def _reencrypt(model: type[Model], field: str) -> int:
    changed = 0
    encrypted = model._default_manager.exclude(**{field: ""}).values_list("pk", field)
    for pk, token in encrypted.iterator(chunk_size=1000):
        if not is_current(token) and is_readable(token):
            # Only if the row is unchanged, because new credentials may have been stored meanwhile.
            unchanged = model._default_manager.filter(pk=pk, **{field: token})
            changed += unchanged.update(**{field: encrypt(decrypt(token))})
    return changed
