"""The installation's public address, called as a browser would: name, TLS, proxy, web process."""

import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

from pushsvc.common.findings import Finding, Kind, good

_SECONDS: Final = 5.0
_ENDS_SOON_DAYS: Final = 14


def examine(url: str) -> Iterator[Finding]:
    """Calls `GET /healthz` at the URL, with the certificates that this machine trusts."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 443
    except ValueError:
        host, port = "", 0
    if not host or not url.startswith("https://"):
        advice = (
            "Browsers subscribe only from https. Use an address such as https://push.example.com."
        )
        yield Kind.PUBLIC_URL_FAILING.found(url=url, error="is not an https address", advice=advice)
        return
    context = ssl.create_default_context()
    try:
        with closing(
            http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
        ) as connection:
            yield from _examined(connection, host)
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        text, advice = _explained(error)
        yield Kind.PUBLIC_URL_FAILING.found(url=url, error=text, advice=advice)


def _examined(connection: http.client.HTTPSConnection, host: str) -> Iterator[Finding]:
    connection.connect()
    certificate: Any = connection.sock.getpeercert()
    connection.request("GET", "/healthz")
    response = connection.getresponse()
    text = response.read(1000).decode("utf-8", "replace")
    if response.status != 200:
        yield Kind.PUBLIC_URL_FAILING.found(
            url=host,
            error=f"GET /healthz returned {response.status}",
            advice=f"Check the proxy's upstream, and that ALLOWED_HOSTS has {host}. The response "
            f"was: {text}",
        )
    else:
        yield good("public_url", f"{host} responds over TLS")
        if not response.getheader("Strict-Transport-Security"):
            yield Kind.PROXY_SCHEME.found(host=host)
    days = (ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time()) / 86_400
    if days < _ENDS_SOON_DAYS:
        yield Kind.CERTIFICATE_ENDS.found(host=host, days=days)


def _explained(error: Exception) -> tuple[str, str]:
    """What is wrong, and what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = "Browsers refuse it as well. Serve a certificate for this name, with its chain."
        return error.verify_message, advice
    if isinstance(error, socket.gaierror | UnicodeError | http.client.InvalidURL):
        return "the name does not resolve", "Check its DNS records."
    return f"no response: {error}", "Check the proxy and the firewall."
