"""The platforms that a message can be sent to, and how large it may be there."""

from collections.abc import Callable, Mapping
from typing import Final

from notifications_app.delivery import web
from notifications_app.delivery.types import Message
from pushsvc.common.endpoints import WELL_KNOWN_SERVICES, own_services

PLATFORMS: Final = ("web",)

# The body that a device gets, and the most bytes that its push service takes.
PAYLOADS: Final[Mapping[str, tuple[Callable[[Message, str], bytes], int]]] = {
    "web": (web.payload, web.MAX_PAYLOAD),
}


def web_push_services(trusted_origins: frozenset[str]) -> list[str]:
    """Those that have a circuit breaker: the well-known ones and the operator's own."""
    return sorted(WELL_KNOWN_SERVICES | own_services(trusted_origins))
