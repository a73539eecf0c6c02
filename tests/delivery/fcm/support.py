"""One message to a device of the FCM sandbox, over a client of its own."""

import asyncio
import contextlib
import json
from uuid import UUID

from notifications_app.delivery.fcm.transport import Client, ServiceAccount
from notifications_app.delivery.types import Destination
from tests.delivery.support import connection_settings, make_message

PROJECT = "demo-app"
FIELDS = ("project_id", "client_email", "private_key", "private_key_id")


def credentials_of(key_file, version=1, **over):
    """The credentials to store for the key file that Google's console downloads."""
    stored = {name: key_file[name] for name in FIELDS} | over
    return ServiceAccount.parse(json.dumps(stored), version)


def destination_of(registration_token, **over):
    values = {
        "subscription_id": UUID("01936c5e-0000-7000-8000-0000000000bb"),
        "address": registration_token,
        "token": "tracking-token",
    }
    return Destination(**values | over)


@contextlib.asynccontextmanager
async def client_of(sandbox, **settings):
    urls = {"fcm_api_base": sandbox.origin, "google_token_uri": sandbox.token_uri}
    client = Client(connection_settings(**urls | settings))
    try:
        yield client
    finally:
        await client.close()


def send(sandbox, credentials, *registration_tokens, message=None, **settings):
    """The outcomes of messages sent one after another over one client."""

    async def deliver():
        async with client_of(sandbox, **settings) as client:
            return [
                await client.send(message or make_message(), destination_of(token), credentials)
                for token in registration_tokens
            ]

    return asyncio.run(deliver())
