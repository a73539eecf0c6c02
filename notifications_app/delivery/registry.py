"""The transports by platform: what each states about its push services, and how to create a client.

Other packages use this module and import no transport. Importing it loads no library of a push
service; `load_transport` loads those of one platform.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, assert_never

from notifications_app.content.values import Content
from notifications_app.delivery.apns import app_key
from notifications_app.delivery.apns import payload as apns_payload
from notifications_app.delivery.apns import responses as apns_responses
from notifications_app.delivery.apns.app_key import AppKey
from notifications_app.delivery.client import Client as BaseClient
from notifications_app.delivery.client import ConnectionSettings
from notifications_app.delivery.fcm import payload as fcm_payload
from notifications_app.delivery.fcm import responses as fcm_responses
from notifications_app.delivery.fcm import service_account
from notifications_app.delivery.fcm.service_account import ServiceAccount
from notifications_app.delivery.types import BrowserDestination, Destination, Message
from notifications_app.delivery.webpush import payload as webpush_payload
from notifications_app.delivery.webpush import responses as webpush_responses
from notifications_app.delivery.webpush.vapid import VapidKey, VapidKeys
from pushsvc.common.endpoints import (
    TOKEN_SERVICES,
    WELL_KNOWN_SERVICES,
    own_services,
    service_of,
)
from pushsvc.common.platforms import Platform

__all__ = [
    "TRANSPORTS",
    "Client",
    "ConnectionSettings",
    "Credentials",
    "ServiceAccount",
    "Transport",
    "VapidKey",
    "VapidKeys",
    "is_at",
    "load_transport",
    "make_client",
    "parse_credentials",
    "services_with_breaker",
]

# The client of any platform. `send` takes the platform's destinations and credentials; on the web,
# VAPID keys.
Client: TypeAlias = BaseClient[Any, Any]
Credentials: TypeAlias = ServiceAccount | AppKey


def _no_names(_content: Content) -> list[str]:
    return []


@dataclass(frozen=True, kw_only=True)
class Transport:
    """What a transport states about itself and its push services.

    `payload` makes the body that a device gets from a message and a tracking token; `max_payload`
    is in bytes. `sure_payloads`: the push services that take less for some of their devices, with
    the bytes that they take for each. `declarative_services`: those whose messages have a `site`.
    `unusable_data_names` returns the names in the content's `data` that the platform reserves.
    `codes`: every code of an outcome, with its meaning. `suspect_codes`: the codes of a Gone that
    is `suspect`; `repeated_codes`: those of them that several sends must find. `refusal_events`:
    the codes that blame the channel's keys if many recipients get them, with the event to log.
    `no_device`: an address that no device has, to check credentials with.
    """

    payload: Callable[[Message, str], bytes]
    max_payload: int
    sure_payloads: Mapping[str, int] = field(default_factory=dict)
    declarative_services: frozenset[str] = frozenset()
    unusable_data_names: Callable[[Content], list[str]] = _no_names
    codes: Mapping[str, str]
    suspect_codes: frozenset[str]
    repeated_codes: frozenset[str] = frozenset()
    refusal_events: Mapping[str, str]
    no_device: str = ""


# Every entry has the same fields in the same order, on purpose.
TRANSPORTS: Final[Mapping[Platform, Transport]] = {
    Platform.WEB: Transport(
        payload=webpush_payload.payload,
        max_payload=webpush_payload.MAX_PAYLOAD,
        sure_payloads=webpush_payload.SURE_PAYLOADS,
        declarative_services=webpush_payload.DECLARATIVE_SERVICES,
        codes=webpush_responses.CODES,
        suspect_codes=webpush_responses.SUSPECT_CODES,
        repeated_codes=webpush_responses.REPEATED_CODES,
        refusal_events=webpush_responses.REFUSAL_EVENTS,
    ),
    Platform.ANDROID: Transport(
        payload=fcm_payload.payload,
        max_payload=fcm_payload.MAX_PAYLOAD,
        unusable_data_names=fcm_payload.unusable_data_names,
        codes=fcm_responses.CODES,
        suspect_codes=fcm_responses.SUSPECT_CODES,
        refusal_events=fcm_responses.REFUSAL_EVENTS,
        no_device=service_account.NO_DEVICE,
    ),
    Platform.IOS: Transport(
        payload=apns_payload.payload,
        max_payload=apns_payload.MAX_PAYLOAD,
        codes=apns_responses.CODES,
        suspect_codes=apns_responses.SUSPECT_CODES,
        refusal_events={},
        no_device=app_key.NO_DEVICE,
    ),
}


def parse_credentials(platform: Platform, secret: str, version: int) -> Credentials:
    """Parses the stored text. Raises ValueError, whose text contains nothing of the secret."""
    match platform:
        case Platform.ANDROID:
            return ServiceAccount.parse(secret, version)
        case Platform.IOS:
            return AppKey.parse(secret, version)
        case _:
            raise ValueError("web push has VAPID keys instead")


def load_transport(platform: Platform) -> type[Client]:
    """Returns the platform's transport. The first call imports it with its libraries, which costs
    the process memory and time."""
    match platform:
        case Platform.WEB:
            from notifications_app.delivery.webpush import transport as webpush

            return webpush.Client
        case Platform.ANDROID:
            from notifications_app.delivery.fcm import transport as fcm

            return fcm.Client
        case Platform.IOS:
            from notifications_app.delivery.apns import transport as apns

            return apns.Client
        case _:
            assert_never(platform)


def make_client(platform: Platform, settings: ConnectionSettings) -> Client:
    """Creates a client. Call it in the event loop that will use the client."""
    return load_transport(platform)(settings)


def services_with_breaker(platform: Platform, trusted_origins: frozenset[str]) -> list[str]:
    """The push services of a platform that have a breaker: known ones and trusted origins."""
    if platform == Platform.WEB:
        return sorted(WELL_KNOWN_SERVICES | own_services(trusted_origins))
    return [TOKEN_SERVICES[platform]]


def is_at(destination: Destination, service: str, trusted_origins: frozenset[str]) -> bool:
    """Whether a call reaches the service, according to the current lists of hosts."""
    if not isinstance(destination, BrowserDestination):
        return True
    return service_of(destination.address, trusted_origins) == service
