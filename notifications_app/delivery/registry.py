"""The platforms that a message can be sent to: their transports side by side."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.fcm import transport as fcm
from notifications_app.delivery.types import Message, Outcome
from notifications_app.delivery.webpush import transport as webpush
from pushsvc.common.endpoints import (
    TOKEN_SERVICES,
    WELL_KNOWN_SERVICES,
    own_services,
    service_of,
)

Target: TypeAlias = webpush.Target | fcm.Target | apns.Target
Credentials: TypeAlias = webpush.Credentials | fcm.Credentials | apns.Credentials

PLATFORMS: Final = ("web", "android", "ios")

# The body that a device gets, and the most bytes that its push service takes.
PAYLOADS: Final[Mapping[str, tuple[Callable[[Message, str], bytes], int]]] = {
    "web": (webpush.payload, webpush.MAX_PAYLOAD),
    "android": (fcm.payload, fcm.MAX_PAYLOAD),
    "ios": (apns.payload, apns.MAX_PAYLOAD),
}


class Client(Protocol):
    """A platform's connections, made and used inside one event loop. `target` and `credentials`
    are of that platform."""

    async def send(self, message: Message, target: Any, credentials: Any) -> Outcome: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Connecting:
    """How an installation reaches the push services. Seconds are those of a whole call."""

    trusted_origins: frozenset[str]
    allowed_hosts: tuple[str, ...]
    ca_file: str
    fcm_api_base: str
    google_token_uri: str
    apns_server: str
    call_seconds: float
    stranger_call_seconds: float
    calls_in_flight: int


def make_client(platform: str, how: Connecting) -> Client:
    """To be called in the event loop that will use it."""
    match platform:
        case "web":
            return webpush.Client(
                trusted_origins=how.trusted_origins,
                allowed_hosts=how.allowed_hosts,
                ca_file=how.ca_file,
                call_timeout=how.call_seconds,
                other_timeout=how.stranger_call_seconds,
                connections_per_origin=how.calls_in_flight,
            )
        case "android":
            return fcm.Client(
                api_base=how.fcm_api_base,
                token_uri=how.google_token_uri,
                ca_file=how.ca_file,
                call_timeout=how.call_seconds,
                connections_per_origin=how.calls_in_flight,
            )
        case "ios":
            return apns.Client(
                server=how.apns_server, ca_file=how.ca_file, call_timeout=how.call_seconds
            )
        case _:
            raise ValueError(f"no transport for {platform}")


def services_with_breaker(platform: str, trusted_origins: frozenset[str]) -> list[str]:
    """The push services of a platform that fail as one: the well-known and the operator's own."""
    if platform == "web":
        return sorted(WELL_KNOWN_SERVICES | own_services(trusted_origins))
    return [TOKEN_SERVICES[platform]]


def is_at(target: Target, service: str, trusted_origins: frozenset[str]) -> bool:
    """Whether what calls the target calls the service, as the lists of hosts are now."""
    if not isinstance(target, webpush.Target):
        return True
    return service_of(target.endpoint, trusted_origins) == service
