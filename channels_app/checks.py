"""System checks of the settings, each with an id. They run at start, before any request.

docs/configuration.md lists the settings. Messages repeat no secret.
"""

import re
import ssl
import sys
from collections.abc import Callable, Iterator
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http.request import validate_host
from kombu import Connection
from kombu.transport import TRANSPORT_ALIASES
from redis import ConnectionPool, RedisError

from channels_app.provider_credentials import is_vapid_subject
from pushsvc.common.endpoints import EndpointNotAllowed, normalise_origin
from pushsvc.common.mail_server import Security

_REDIS_SCHEMES = frozenset({"redis", "rediss", "unix"})
# Settings with origins of the installation.
_TRUSTED_ORIGINS = (
    "WEBPUSH_TRUSTED_ORIGINS",
    "WEBHOOK_TRUSTED_ORIGINS",
    "NEWSFEED_TRUSTED_ORIGINS",
)
_HOST = re.compile(r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*", re.ASCII)
_HOST_AND_PORT = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}", re.ASCII)
_GOOGLE = "https://fcm.googleapis.com"


def register_checks() -> None:
    register(check_settings, Tags.compatibility)
    register(check_deployment, Tags.security, deploy=True)


def require_working_settings() -> None:
    """Ends this process with a message for each setting that cannot work.

    For web and workers, because neither a web server nor Celery runs system checks. Otherwise a
    malformed setting, such as TRUSTED_PROXIES, would silently have its default.
    """
    if errors := check_settings():
        sys.exit("\n".join(["The settings are refused:", *map(str, errors)]))


def check_settings(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    return [
        *_unreadable(),
        *_secrets(),
        *_servers(),
        *_push_services(),
        *_mail(),
        *_provider(),
        *_bucket(),
    ]


def check_deployment(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Reports settings that are not suitable for a public installation."""
    return [*_unsafe(), *_public()]


def _error(number: int, message: str, hint: str = "") -> CheckMessage:
    return Error(message, hint=hint, id=f"pushsvc.E{number:03}")


def _warning(number: int, message: str, hint: str) -> CheckMessage:
    return Warning(message, hint=hint, id=f"pushsvc.W{number:03}")


def _unreadable() -> Iterator[CheckMessage]:
    for error in settings.ENV.errors:
        yield _error(1, f"{error.name} {error.message}.")


def _secrets() -> Iterator[CheckMessage]:
    if settings.SECRET_KEY == settings.UNSET_SECRET_KEY:
        hint = "Set it to 50 random characters, the same in every process."
        yield _error(2, "SECRET_KEY is not set.", hint)
    hint = "Set it to one Fernet key or several, newest first: Fernet.generate_key()."
    if not settings.CREDENTIAL_KEYS:
        yield _error(3, "CREDENTIAL_KEYS is not set.", hint)
    for position, key in enumerate(settings.CREDENTIAL_KEYS, start=1):
        if not _succeeds(Fernet, key):
            yield _error(4, f"Key {position} of CREDENTIAL_KEYS is not a Fernet key.", hint)


def _servers() -> Iterator[CheckMessage]:
    if _scheme(settings.REDIS_URL) not in _REDIS_SCHEMES or not _succeeds(
        lambda url: ConnectionPool.from_url(url).make_connection(), settings.REDIS_URL
    ):
        hint = "redis://host:6379/0, rediss://… or unix:///path/to/socket"
        yield _error(5, "REDIS_URL is not a Redis address.", hint)
    # Celery parses `redis+socket://` as transport and address.
    transport = _scheme(settings.CELERY_BROKER_URL).partition("+")[0]
    if transport not in TRANSPORT_ALIASES or not _succeeds(Connection, settings.CELERY_BROKER_URL):
        hint = "redis://…, amqp://… or another transport of Celery"
        yield _error(6, "CELERY_BROKER_URL is not a broker address.", hint)
    if settings.PUBLIC_BASE_URL and not _succeeds(normalise_origin, settings.PUBLIC_BASE_URL):
        hint = "https://push.example.com, without a path"
        yield _error(9, "PUBLIC_BASE_URL is not an origin.", hint)


def _push_services() -> Iterator[CheckMessage]:
    for name in _TRUSTED_ORIGINS:
        for origin in getattr(settings, name):
            if not _succeeds(normalise_origin, origin):
                message = f"{name} contains {origin!r}, which is not an origin."
                yield _error(7, message, "https://push.example.com:8443")
    for host in settings.WEBPUSH_ALLOWED_HOSTS:
        if not _HOST.fullmatch(host):
            message = f"WEBPUSH_ALLOWED_HOSTS contains {host!r}, which is not a host name."
            yield _error(8, message, "push.services.mozilla.com")
    if not is_vapid_subject(settings.VAPID_SUBJECT):
        hint = "Use mailto:you@your-domain.com or https://your-domain.com. Apple refuses others."
        yield _error(10, "VAPID_SUBJECT names no real domain.", hint)
    if settings.PROVIDER_CA_FILE and not _has_certificates(settings.PROVIDER_CA_FILE):
        yield _error(11, "PROVIDER_CA_FILE cannot be read.", "A file of certificates (PEM)")
    if not _succeeds(normalise_origin, settings.FCM_API_BASE):
        yield _error(12, "FCM_API_BASE is not an origin.", f"{_GOOGLE}, without a path")
    if _scheme(settings.GOOGLE_TOKEN_URI) not in {"http", "https"}:
        hint = "https://oauth2.googleapis.com/token"
        yield _error(13, "GOOGLE_TOKEN_URI is not an address.", hint)
    if settings.APNS_SERVER and not _HOST_AND_PORT.fullmatch(settings.APNS_SERVER):
        hint = "api.push.apple.com:443; empty for Apple's own servers"
        yield _error(14, "APNS_SERVER is not host:port.", hint)


def _mail() -> Iterator[CheckMessage]:
    if settings.MAIL_SERVER is None:
        return
    sender = settings.EMAIL_FROM
    if not (sender.isprintable() and _succeeds(validate_email, parseaddr(sender)[1])):
        hint = "push@example.com, or pushsvc <push@example.com>"
        yield _error(15, "EMAIL_FROM is not an e-mail address.", hint)
    if not settings.PUBLIC_BASE_URL:
        hint = "Mails contain links, which begin with it."
        yield _error(16, "EMAIL_URL is set, but PUBLIC_BASE_URL is not.", hint)


def _provider() -> Iterator[CheckMessage]:
    if not settings.OIDC_ISSUER:
        return
    if not _is_issuer(settings.OIDC_ISSUER):
        hint = "https://accounts.google.com, exactly as the provider writes it"
        yield _error(17, "OIDC_ISSUER is not an https address.", hint)
    for name in ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "PUBLIC_BASE_URL"):
        if not getattr(settings, name):
            hint = "See docs/configuration.md, “Sign-in by OpenID Connect”."
            yield _error(18, f"OIDC_ISSUER is set, but {name} is not.", hint)


def _bucket() -> Iterator[CheckMessage]:
    if not settings.IMAGES_BUCKET_URL:
        return
    parts = urlsplit(settings.IMAGES_BUCKET_URL)
    is_plain = not (parts.username or parts.query or parts.fragment)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not is_plain:
        hint = "https://s3.eu-central-1.amazonaws.com/your-bucket"
        yield _error(22, "IMAGES_BUCKET_URL is not the address of a bucket.", hint)
    for name in ("IMAGES_BUCKET_KEY_ID", "IMAGES_BUCKET_SECRET_KEY"):
        if not getattr(settings, name):
            hint = "See docs/configuration.md, “Images”."
            yield _error(23, f"IMAGES_BUCKET_URL is set, but {name} is not.", hint)


def _unsafe() -> Iterator[CheckMessage]:
    if settings.VAPID_SUBJECT == settings.DEFAULT_VAPID_SUBJECT:
        hint = "Set it to the mailto: or https: address where push services can reach you."
        yield _warning(1, "VAPID_SUBJECT is the example.", hint)
    if not settings.PUBLIC_BASE_URL.startswith("https://"):
        hint = "Browsers subscribe only over https, and the console's cookies require it."
        yield _warning(2, "PUBLIC_BASE_URL is not https.", hint)
    if any("ssl_cert_reqs=none" in url for url in (settings.REDIS_URL, settings.CELERY_BROKER_URL)):
        hint = "Anyone who can redirect the connection can read and change the data in Redis."
        yield _warning(3, "The certificate of Redis is not verified.", hint)
    if settings.MAIL_SERVER is not None and settings.MAIL_SERVER.security == Security.NONE:
        hint = "Anyone who reads a mail in transit can set the password of its recipient."
        yield _warning(4, "Mails are sent without TLS.", hint)


def _public() -> Iterator[CheckMessage]:
    """Contradictions between PUBLIC_BASE_URL and other settings."""
    if not settings.PUBLIC_BASE_URL.startswith("https://"):
        return
    if not settings.TRUSTED_PROXIES:
        hint = (
            "Limits count the proxy that ends TLS as one client, so one visitor can use up the "
            "limits of all. Set TRUSTED_PROXIES to the number of proxies."
        )
        yield _error(19, "PUBLIC_BASE_URL is https, and TRUSTED_PROXIES is 0.", hint)
    host = urlsplit(settings.PUBLIC_BASE_URL).hostname or ""
    if not validate_host(host, settings.ALLOWED_HOSTS):
        message = f"ALLOWED_HOSTS does not contain {host}, the host of PUBLIC_BASE_URL."
        yield _error(20, message, f"Requests for it get 400 host_not_allowed. Add {host}.")
    if settings.DEMO_RECORD:
        hint = "Anyone can send to the demo channel. Remove DEMO_RECORD."
        yield _error(21, "DEMO_RECORD is set on a public service.", hint)
    for name, usual in (("FCM_API_BASE", _GOOGLE), ("APNS_SERVER", "")):
        value = getattr(settings, name)
        if value != usual:
            hint = "Messages do not go to the provider. Remove the setting unless that is intended."
            yield _warning(5, f"{name} is {value}.", hint)


def _succeeds(check: Callable[[str], object], text: str) -> bool:
    """Whether the check accepts the text, and raises none of the errors of the checks used here.
    redis-py and kombu raise TypeError, KeyError and RedisError for parameters of an address."""
    refused = (ValueError, TypeError, KeyError, RedisError, ValidationError, EndpointNotAllowed)
    try:
        check(text)
    except refused:
        return False
    return True


def _has_certificates(path: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except OSError:  # such as SSLError
        return False
    return True


def _is_issuer(text: str) -> bool:
    """Whether the text is an https URL without query and fragment. For tests, http on this machine
    is allowed."""
    parts = urlsplit(text)
    is_here = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    has_scheme = parts.scheme == "https" or (parts.scheme == "http" and is_here)
    return has_scheme and bool(parts.hostname) and not (parts.query or parts.fragment)


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""
