"""A process's event loop and its connections to push services, kept until the process ends.

Both are created when they are first needed, which is after the fork. Call `shut_down` when the
process ends.
"""

import functools
import os
from collections.abc import Iterable

from django.conf import settings

from notifications_app.delivery.event_loop import EventLoopThread
from notifications_app.delivery.registry import (
    Client,
    ConnectionSettings,
    load_transport,
    make_client,
)
from pushsvc.common.platforms import Platform


def load(platforms: Iterable[Platform]) -> None:
    """Imports the platforms' transports. Call it before a fork, so that processes share memory."""
    for platform in platforms:
        load_transport(platform)


def event_loop() -> EventLoopThread:
    return _event_loop(os.getpid())


def client(platform: Platform) -> Client:
    """The platform's transport. Await its calls in `event_loop`."""
    clients = _clients(os.getpid())
    if platform not in clients:
        clients[platform] = event_loop().run(_made(platform))
    return clients[platform]


def shut_down() -> None:
    """Closes the clients and the loop. Safe to repeat. Both are created again if needed later."""
    clients = _clients(os.getpid())
    if clients:
        for each in clients.values():
            event_loop().run(each.close())
        clients.clear()
        event_loop().stop()
        _event_loop.cache_clear()


@functools.cache
def _event_loop(_pid: int) -> EventLoopThread:
    return EventLoopThread()


@functools.cache
def _clients(_pid: int) -> dict[Platform, Client]:
    return {}


async def _made(platform: Platform) -> Client:
    return new_client(platform)


def new_client(platform: Platform) -> Client:
    """A new transport for the running event loop. The caller closes it."""
    own = ConnectionSettings(
        trusted_origins=settings.WEBPUSH_TRUSTED_ORIGINS,
        allowed_hosts=settings.WEBPUSH_ALLOWED_HOSTS,
        ca_file=settings.PROVIDER_CA_FILE,
        fcm_api_base=settings.FCM_API_BASE,
        google_token_uri=settings.GOOGLE_TOKEN_URI,
        apns_server=settings.APNS_SERVER,
        call_seconds=settings.CALL_SECONDS,
        unknown_host_call_seconds=settings.UNKNOWN_HOST_CALL_SECONDS,
        calls_in_flight=settings.CALLS_IN_FLIGHT,
    )
    return make_client(platform, own)
