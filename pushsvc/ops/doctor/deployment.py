"""This process's settings: settings that cannot work, and settings that contradict each other."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host

from pushsvc.ops.doctor.finding import Finding, Tone

_SUBJECT: Final = "settings"
_GOOGLE: Final = "https://fcm.googleapis.com"


def examine() -> Iterator[Finding]:
    """The findings of `manage.py check --deploy`, and contradictions between settings."""
    found = [*_checked(), *_contradictions()]
    yield from found or [Finding(_SUBJECT, Tone.OK, "The settings are accepted")]


def _checked() -> Iterator[Finding]:
    for message in checks.run_checks(include_deployment_checks=True):
        if message.is_silenced():
            continue
        tone = Tone.BAD if message.is_serious() else Tone.WARN
        title = f"{message.msg.rstrip('.')} ({message.id})"
        yield Finding(_SUBJECT, tone, title, message.hint or "See docs/configuration.md.")


def _contradictions() -> Iterator[Finding]:
    if not settings.PUBLIC_BASE_URL.startswith("https://"):
        return
    if not settings.TRUSTED_PROXIES:
        remedy = (
            "TLS ends in a proxy, and limits count it as one client: one visitor can use them up "
            "for all. Set TRUSTED_PROXIES to the number of proxies."
        )
        yield Finding(_SUBJECT, Tone.BAD, "PUBLIC_BASE_URL is https, TRUSTED_PROXIES is 0", remedy)
    host = urlsplit(settings.PUBLIC_BASE_URL).hostname or ""
    if not validate_host(host, settings.ALLOWED_HOSTS):
        remedy = f"All requests for it are answered 400 host_not_allowed. Add {host}."
        title = f"ALLOWED_HOSTS lacks {host}, the host of PUBLIC_BASE_URL"
        yield Finding(_SUBJECT, Tone.BAD, title, remedy)
    if settings.DEMO_RECORD:
        remedy = "Everybody can send to the demo channel. Remove DEMO_RECORD."
        yield Finding(_SUBJECT, Tone.BAD, "DEMO_RECORD is set on a public service", remedy)
    sandboxes = {
        "FCM_API_BASE": settings.FCM_API_BASE not in {"", _GOOGLE},
        "APNS_SERVER": bool(settings.APNS_SERVER),
    }
    for name in [name for name, is_set in sandboxes.items() if is_set]:
        remedy = "Messages go there and not to the provider. Remove it unless that is intended."
        yield Finding(_SUBJECT, Tone.WARN, f"{name} is {getattr(settings, name)}", remedy)
