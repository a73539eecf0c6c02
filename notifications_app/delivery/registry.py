"""The transports by platform: what each states of its push services, and how its client is made.

Other packages learn of push services here, and import no transport.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

from notifications_app.delivery.apns import answers as apns_answers
from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.client import Client as BaseClient
from notifications_app.delivery.fcm import answers as fcm_answers
from notifications_app.delivery.fcm import transport as fcm
from notifications_app.delivery.fcm.access_token import ServiceAccount
from notifications_app.delivery.types import BrowserTarget, Message, Target
from notifications_app.delivery.webpush import answers as webpush_answers
from notifications_app.delivery.webpush import transport as webpush
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
    "Connecting",
    "Credentials",
    "ServiceAccount",
    "Transport",
    "VapidKey",
    "VapidKeys",
    "is_at",
    "make_client",
    "parse_credentials",
    "services_with_breaker",
]

# Of some platform. Its `send` takes that platform's targets and credentials, VAPID keys on the web.
Client: TypeAlias = BaseClient[Any, Any]
Credentials: TypeAlias = ServiceAccount | apns.AppKey


def _no_names(_data: Mapping[str, str]) -> list[str]:
    return []


@dataclass(frozen=True, kw_only=True)
class Transport:
    """What a transport states of itself and of its push services.

    `payload` is the body that a device gets, of a message and a tracking token; `max_payload` is in
    bytes. `unusable_data_names`: those names in a sender's `data` that the platform reserves.
    `codes`: every code of an outcome, with its meaning. `suspect_codes`: those that come with a
    Gone that is `suspect`. `never_asked_codes`: those that say nothing of the push service.
    `refusal_events`: those that blame the channel's keys where many recipients get them, with the
    event to log. `no_device`: an address that no device has, to test credentials with.
    """

    payload: Callable[[Message, str], bytes]
    max_payload: int
    unusable_data_names: Callable[[Mapping[str, str]], list[str]] = _no_names
    codes: Mapping[str, str]
    suspect_codes: frozenset[str]
    never_asked_codes: frozenset[str]
    refusal_events: Mapping[str, str]
    no_device: str = ""


# The entries look alike on purpose: each states the same fields in the same order.
TRANSPORTS: Final[Mapping[Platform, Transport]] = {
    Platform.WEB: Transport(
        payload=webpush.payload,
        max_payload=webpush.MAX_PAYLOAD,
        codes=webpush_answers.CODES,
        suspect_codes=webpush_answers.SUSPECT_CODES,
        never_asked_codes=webpush_answers.NEVER_ASKED_CODES,
        refusal_events=webpush_answers.REFUSAL_EVENTS,
    ),
    Platform.ANDROID: Transport(
        payload=fcm.payload,
        max_payload=fcm.MAX_PAYLOAD,
        unusable_data_names=fcm.unusable_data_names,
        codes=fcm_answers.CODES,
        suspect_codes=fcm_answers.SUSPECT_CODES,
        never_asked_codes=fcm_answers.NEVER_ASKED_CODES,
        refusal_events=fcm_answers.REFUSAL_EVENTS,
        no_device=fcm.NO_DEVICE,
    ),
    Platform.IOS: Transport(
        payload=apns.payload,
        max_payload=apns.MAX_PAYLOAD,
        codes=apns_answers.CODES,
        suspect_codes=apns_answers.SUSPECT_CODES,
        never_asked_codes=apns_answers.NEVER_ASKED_CODES,
        refusal_events={},
        no_device=apns.NO_DEVICE,
    ),
}


def parse_credentials(platform: Platform, secret: str, version: int) -> Credentials:
    """From the text that is stored. Raises ValueError, whose words hold nothing of the secret."""
    match platform:
        case Platform.ANDROID:
            return ServiceAccount.parse(secret, version)
        case Platform.IOS:
            return apns.AppKey.parse(secret, version)
        case _:
            raise ValueError("web push has VAPID keys instead")


@dataclass(frozen=True, kw_only=True)
class Connecting:
    """How an installation reaches the push services. Seconds limit a whole call."""

    trusted_origins: frozenset[str]
    allowed_hosts: tuple[str, ...]
    ca_file: str
    fcm_api_base: str
    google_token_uri: str
    apns_server: str
    call_seconds: float
    unknown_host_call_seconds: float
    calls_in_flight: int


def make_client(platform: Platform, how: Connecting) -> Client:
    """Call it in the event loop that will use the client."""
    match platform:
        case Platform.WEB:
            return webpush.Client(
                trusted_origins=how.trusted_origins,
                allowed_hosts=how.allowed_hosts,
                ca_file=how.ca_file,
                call_timeout=how.call_seconds,
                unknown_host_timeout=how.unknown_host_call_seconds,
                connections_per_origin=how.calls_in_flight,
            )
        case Platform.ANDROID:
            return fcm.Client(
                api_base=how.fcm_api_base,
                token_uri=how.google_token_uri,
                ca_file=how.ca_file,
                call_timeout=how.call_seconds,
                connections_per_origin=how.calls_in_flight,
            )
        case Platform.IOS:
            return apns.Client(
                server=how.apns_server, ca_file=how.ca_file, call_timeout=how.call_seconds
            )
        case _:
            assert_never(platform)


def services_with_breaker(platform: Platform, trusted_origins: frozenset[str]) -> list[str]:
    """The push services of a platform that have a breaker: known ones and the operator's own."""
    if platform == Platform.WEB:
        return sorted(WELL_KNOWN_SERVICES | own_services(trusted_origins))
    return [TOKEN_SERVICES[platform]]


def is_at(target: Target, service: str, trusted_origins: frozenset[str]) -> bool:
    """Whether a call to the target reaches the service, by the present lists of hosts."""
    if not isinstance(target, BrowserTarget):
        return True
    return service_of(target.address, trusted_origins) == service
