"""System checks of the settings, each with an id. They run at start, before any request.

docs/configuration.md lists the settings. Messages repeat no secret.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from kombu.transport import TRANSPORT_ALIASES

from channels_app.provider_credentials import is_vapid_subject
from pushsvc.common.endpoints import EndpointNotAllowed, normalise_origin
from pushsvc.common.mail_server import Security

_REDIS_SCHEMES = frozenset({"redis", "rediss", "unix"})
_HOST = re.compile(r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*", re.ASCII)

_HOST_AND_PORT = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}", re.ASCII)


def register_checks() -> None:
    register(check_settings, Tags.compatibility)
    register(check_deployment, Tags.security, deploy=True)


def require_working_settings() -> None:
    """Ends this process with a message for each setting that cannot work.

    For web and workers, because neither a web server nor Celery runs system checks. Otherwise a
    malformed setting, such as TRUSTED_PROXIES, would silently have its default.
    """
    faults = check_settings()
    if faults:
        sys.exit("\n".join(["The settings are refused:", *map(str, faults)]))


def check_settings(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    return [
        *_unreadable(),
        *_secrets(),
        *_servers(),
        *_addresses(),
        *_push_services(),
        *_mail(),
        *_provider(),
    ]


def check_deployment(app_configs: Any = None, **_: Any) -> Sequence[CheckMessage]:
    """Warns of settings that are not suitable for a public installation."""
    found = []
    if settings.VAPID_SUBJECT == settings.DEFAULT_VAPID_SUBJECT:
        hint = "Set it to the mailto: or https: address where push services can reach you."
        found.append(Warning("VAPID_SUBJECT is the example.", hint=hint, id="pushsvc.W001"))
    if not settings.PUBLIC_BASE_URL.startswith("https://"):
        hint = "Browsers subscribe only from https, and the console's cookies need it."
        found.append(Warning("PUBLIC_BASE_URL is not https.", hint=hint, id="pushsvc.W002"))
    if any("ssl_cert_reqs=none" in url for url in (settings.REDIS_URL, settings.CELERY_BROKER_URL)):
        hint = "Anybody who can redirect the connection can read and change what is in Redis."
        message = "The certificate of Redis is not verified."
        found.append(Warning(message, hint=hint, id="pushsvc.W003"))
    if settings.MAIL_SERVER is not None and settings.MAIL_SERVER.security == Security.NONE:
        hint = "Anybody who reads a mail on its way can choose the password of its reader."
        found.append(Warning("Mails are sent without TLS.", hint=hint, id="pushsvc.W004"))
    return found


def _unreadable() -> Iterator[CheckMessage]:
    for fault in settings.ENV.faults:
        yield Error(f"{fault.name} {fault.message}.", id="pushsvc.E001")


def _secrets() -> Iterator[CheckMessage]:
    if settings.SECRET_KEY == settings.UNSET_SECRET_KEY:
        hint = "Set it to 50 random characters, the same in every process."
        yield Error("SECRET_KEY is not set.", hint=hint, id="pushsvc.E002")
    hint = "Set it to one Fernet key or several, newest first: Fernet.generate_key()."
    if not settings.CREDENTIAL_KEYS:
        yield Error("CREDENTIAL_KEYS is not set.", hint=hint, id="pushsvc.E003")
    for position, key in enumerate(settings.CREDENTIAL_KEYS, start=1):
        if not _is_fernet_key(key):
            message = f"Key {position} of CREDENTIAL_KEYS is not a Fernet key."
            yield Error(message, hint=hint, id="pushsvc.E004")


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except ValueError:
        return False
    return True


def _servers() -> Iterator[CheckMessage]:
    if _scheme(settings.REDIS_URL) not in _REDIS_SCHEMES:
        hint = "redis://host:6379/0, rediss://… or unix:///path/to/socket"
        yield Error("REDIS_URL is not a Redis address.", hint=hint, id="pushsvc.E005")
    # Celery parses `redis+socket://` as transport and address.
    if _scheme(settings.CELERY_BROKER_URL).partition("+")[0] not in TRANSPORT_ALIASES:
        hint = "redis://…, amqp://… or another transport of Celery"
        yield Error("CELERY_BROKER_URL is not a broker address.", hint=hint, id="pushsvc.E006")


def _addresses() -> Iterator[CheckMessage]:
    for origin in settings.WEBPUSH_TRUSTED_ORIGINS:
        if not _is_origin(origin):
            message = f"WEBPUSH_TRUSTED_ORIGINS holds {origin!r}, which is not an origin."
            yield Error(message, hint="https://push.example.com:8443", id="pushsvc.E007")
    for host in settings.WEBPUSH_ALLOWED_HOSTS:
        if not _HOST.fullmatch(host):
            message = f"WEBPUSH_ALLOWED_HOSTS holds {host!r}, which is not a host name."
            yield Error(message, hint="push.services.mozilla.com", id="pushsvc.E008")
    if settings.PUBLIC_BASE_URL and not _is_origin(settings.PUBLIC_BASE_URL):
        hint = "https://push.example.com, without a path"
        yield Error("PUBLIC_BASE_URL is not an origin.", hint=hint, id="pushsvc.E009")


def _push_services() -> Iterator[CheckMessage]:
    if not is_vapid_subject(settings.VAPID_SUBJECT):
        hint = "Use mailto:you@your-domain.com or https://your-domain.com. Apple refuses others."
        yield Error("VAPID_SUBJECT names no real domain.", hint=hint, id="pushsvc.E010")
    if settings.PROVIDER_CA_FILE and not os.access(settings.PROVIDER_CA_FILE, os.R_OK):
        yield Error("PROVIDER_CA_FILE cannot be read.", id="pushsvc.E011")
    if not _is_origin(settings.FCM_API_BASE):
        hint = "https://fcm.googleapis.com, without a path"
        yield Error("FCM_API_BASE is not an origin.", hint=hint, id="pushsvc.E012")
    if _scheme(settings.GOOGLE_TOKEN_URI) not in {"http", "https"}:
        hint = "https://oauth2.googleapis.com/token"
        yield Error("GOOGLE_TOKEN_URI is not an address.", hint=hint, id="pushsvc.E013")
    if settings.APNS_SERVER and not _HOST_AND_PORT.fullmatch(settings.APNS_SERVER):
        hint = "api.push.apple.com:443; empty for Apple's own servers"
        yield Error("APNS_SERVER is not host:port.", hint=hint, id="pushsvc.E014")


def _mail() -> Iterator[CheckMessage]:
    if settings.MAIL_SERVER is None:
        return
    if not _is_sender(settings.EMAIL_FROM):
        hint = "push@example.com, or pushsvc <push@example.com>"
        yield Error("EMAIL_FROM is not an e-mail address.", hint=hint, id="pushsvc.E015")
    if not settings.PUBLIC_BASE_URL:
        hint = "Mails contain links, which begin with it."
        message = "EMAIL_URL is set, but PUBLIC_BASE_URL is not."
        yield Error(message, hint=hint, id="pushsvc.E016")


def _provider() -> Iterator[CheckMessage]:
    if not settings.OIDC_ISSUER:
        return
    if not _is_issuer(settings.OIDC_ISSUER):
        hint = "https://accounts.google.com, exactly as the provider writes it"
        yield Error("OIDC_ISSUER is not an https address.", hint=hint, id="pushsvc.E017")
    for name in ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "PUBLIC_BASE_URL"):
        if not getattr(settings, name):
            hint = "See docs/configuration.md, “Sign-in by OpenID Connect”."
            yield Error(f"OIDC_ISSUER is set, but {name} is not.", hint=hint, id="pushsvc.E018")


def _is_issuer(text: str) -> bool:
    """Whether the text is an https URL without query and fragment. For tests, http on this machine
    is allowed."""
    parts = urlsplit(text)
    is_here = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    has_scheme = parts.scheme == "https" or (parts.scheme == "http" and is_here)
    return has_scheme and bool(parts.hostname) and not (parts.query or parts.fragment)


def _is_sender(text: str) -> bool:
    try:
        validate_email(parseaddr(text)[1])
    except ValidationError:
        return False
    return text.isprintable()


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


def _is_origin(text: str) -> bool:
    try:
        normalise_origin(text)
    except EndpointNotAllowed:
        return False
    return True
