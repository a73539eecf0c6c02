"""The installation's public address, called as a browser would: name, TLS, proxy, web process."""

import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from pushsvc.ops.doctor.finding import Finding, Tone

_SUBJECT: Final = "public url"
_SECONDS: Final = 5.0
_ENDS_SOON_DAYS: Final = 14


def examine(url: str) -> Iterator[Finding]:
    """Calls `GET /healthz` at the URL, with the certificates that this machine trusts."""
    host, port = _https_host(url)
    if not host:
        remedy = (
            "Browsers subscribe only from https. Give an address such as https://push.example.com."
        )
        yield Finding(_SUBJECT, Tone.BAD, f"{url} is not an https address", remedy)
        return
    context = ssl.create_default_context()
    connection = http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
    try:
        yield from _examined(connection, host)
    except (OSError, http.client.HTTPException) as error:
        yield _failed(url, error)
    finally:
        connection.close()


def _https_host(url: str) -> tuple[str, int]:
    """Host and port of the URL; the host is empty if it is not an https URL."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "", parts.port or 443) if parts.scheme == "https" else ("", 0)
    except ValueError:
        return "", 0


def _examined(connection: http.client.HTTPSConnection, host: str) -> Iterator[Finding]:
    connection.connect()
    certificate: Any = connection.sock.getpeercert()
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    text = answer.read(1000).decode("utf-8", "replace")
    if answer.status == 200:
        yield Finding(_SUBJECT, Tone.OK, f"{host} answers over TLS")
        if not answer.getheader("Strict-Transport-Security"):
            remedy = (
                "So the service takes them for http, and does not tell browsers to keep to https. "
                "Let it set X-Forwarded-Proto, and X-Forwarded-For, by which limits tell visitors "
                "apart."
            )
            title = f"The proxy of {host} does not say that requests come by https"
            yield Finding(_SUBJECT, Tone.WARN, title, remedy)
    else:
        remedy = f"Check the proxy's upstream, and that ALLOWED_HOSTS has {host}. It said: {text}"
        title = f"{host} answers {answer.status} to GET /healthz"
        yield Finding(_SUBJECT, Tone.BAD, title, remedy)
    days = (ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time()) / 86_400
    if days < _ENDS_SOON_DAYS:
        yield Finding(
            _SUBJECT, Tone.WARN, f"The certificate of {host} ends in {days:.0f} days", "Renew it."
        )


def _failed(url: str, error: Exception) -> Finding:
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = "Browsers refuse it too. Serve a certificate for this name with its whole chain."
        return Finding(_SUBJECT, Tone.BAD, f"{url}: {error.verify_message}", remedy)
    if isinstance(error, socket.gaierror):
        return Finding(
            _SUBJECT, Tone.BAD, f"{url}: the name is not known", "Check its DNS records."
        )
    remedy = "Check the proxy and the firewall."
    return Finding(_SUBJECT, Tone.BAD, f"{url} does not answer: {error}", remedy)
