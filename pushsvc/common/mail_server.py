"""The mail server that EMAIL_URL names. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit


class Security(StrEnum):
    """How the connection is protected. With STARTTLS, a server without it gets no mail."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


_PORTS: Final = {Security.STARTTLS: 587, Security.TLS: 465, Security.NONE: 25}


@dataclass(frozen=True, slots=True)
class MailServer:
    host: str
    port: int
    security: Security
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, url: str) -> "MailServer":
        """Parses EMAIL_URL. `smtp://` upgrades the connection with STARTTLS, `smtps://` begins with
        TLS, and `smtp://…?tls=off` uses no TLS and allows no password. Raises ValueError."""
        parts = urlsplit(url)
        security = _security(parts.scheme, parts.query)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not parts.hostname or parts.path.strip("/") or bool(user) != bool(password):
            raise ValueError("not a mail server")
        if user and security == Security.NONE:
            raise ValueError("a password without TLS")
        parts.hostname.encode("idna")  # smtplib can use no others
        f"{user}{password}".encode("ascii")
        return cls(parts.hostname, parts.port or _PORTS[security], security, user, password)


def _security(scheme: str, query: str) -> Security:
    match scheme, parse_qs(query, keep_blank_values=True):
        case "smtp", options if not options:
            return Security.STARTTLS
        case "smtps", options if not options:
            return Security.TLS
        case "smtp", {"tls": ["off"], **others} if not others:
            return Security.NONE
    raise ValueError("not smtp, smtps or smtp with tls=off")
