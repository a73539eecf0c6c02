"""Parses DATABASE_URL."""

from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

# The server of a kept connection, or a firewall on the way, may disappear without closing it. The
# kernel would wait for a quarter of an hour. A busy server still acknowledges.
_SILENCE_SECONDS: Final = 20
_OF_LIBPQ: Final[dict[str, object]] = {
    "connect_timeout": 3,
    "tcp_user_timeout": _SILENCE_SECONDS * 1000,
    "keepalives_idle": _SILENCE_SECONDS,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


def parsed(url: str, *, is_kept: bool) -> dict[str, object]:
    """The entry for Django's DATABASES. `is_kept`: connections stay open until the process ends."""
    parts = urlsplit(url)
    query = dict(pair.partition("=")[::2] for pair in parts.query.split("&") if pair)
    servers = _servers(parts)
    host = ",".join(server.hostname or "" for server in servers) or query.pop("host", "")
    ports = [str(server.port or "") for server in servers]
    return {
        "ENGINE": "pushsvc.common.store.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(host),
        "PORT": ",".join(ports) if any(ports) else "",
        # Without limit for a worker, so that it need not connect again after waiting for work.
        "CONN_MAX_AGE": None if is_kept else 60,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": True,  # PgBouncer in transaction mode
        "OPTIONS": _OF_LIBPQ | {k: unquote(v) for k, v in query.items()},
    }


def checked(url: str) -> str:
    """Returns the URL. Raises ValueError if it is not a URL of PostgreSQL."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"} or not parts.path.strip("/"):
        raise ValueError(url)
    for server in _servers(parts):
        _ = server.port
    return url


def _servers(parts: SplitResult) -> list[SplitResult]:
    """A primary and its standbys are separated by commas, each with its port."""
    return [urlsplit(f"//{server}") for server in parts.netloc.rpartition("@")[2].split(",")]
