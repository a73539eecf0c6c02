"""The interface as its clients see it, on a channel of the cast."""

import json
from base64 import urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import urandom
from threading import Barrier
from uuid import uuid4

import redis
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.db import connection
from django.test import Client

from channels_app.models import Channel
from notifications_app.models import Notification
from pushsvc.common.store.redis_client import redis_client
from tests.factories import make_key

# Ids of nothing, the same in every process that collects the tests.
NOWHERE = "0192f0c1-0000-7000-8000-000000000000"
NOWHERE_BARE = NOWHERE.replace("-", "")


@dataclass
class Owner:
    """Alice, Bob: who has a channel and a key of it."""

    channel: Channel
    key: str
    client: Client = field(default_factory=Client)

    def call(self, method, path, body=None, **headers):
        return self.client.generic(
            method,
            path,
            "" if body is None else json.dumps(body),
            content_type="application/json",
            headers={"Authorization": f"Key {self.key}"} | headers,
        )

    def send(self, body, **headers):
        return self.call("POST", "/send-notification", body, **headers)

    def device(self, path, body, **headers):
        """What a device of the channel sends: public."""
        return Client(REMOTE_ADDR=headers.pop("address", "203.0.113.7")).post(
            path,
            body,
            content_type="application/json",
            headers={"X-Channel-ID": str(self.channel.id)} | headers,
        )

    def subscribe(self, body, **headers):
        return self.device("/subscribe", body, **headers)


def owner_of(channel, scopes=("send", "read", "manage")):
    return Owner(channel, make_key(channel, scopes=list(scopes)))


def accepted(owner, body, **headers):
    """Sends what is to be accepted; the notification."""
    response = owner.send(body, **headers)
    assert response.status_code == 202, response.content
    return Notification.objects.get(id=response.json()["notification_id"])


def browser(endpoint="https://fcm.googleapis.com/fcm/send/abc", **fields):
    return {"endpoint": endpoint, "keys": browser_keys()} | fields


def browser_keys():
    point = generate_private_key(SECP256R1()).public_key()
    raw = point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return {"p256dh": base64url(raw), "auth": base64url(urandom(16))}


def base64url(raw):
    return urlsafe_b64encode(raw).decode().rstrip("=")


def faults(response, status=400):
    """[(attr, code)] of a problem, whose general shape is checked on the way."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    return [(fault["attr"], fault["code"]) for fault in problem.get("errors", [])]


def code(response, status):
    faults(response, status)
    return response.json()["code"]


def at_once(*calls):
    """What each call returned, all begun together, each with a database connection of its own."""
    barrier = Barrier(len(calls))

    def run(call):
        try:
            barrier.wait(timeout=10)
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@contextmanager
def asked_of_redis():
    """[(the asking connection's address, the command)], complete when the block has ended; only of
    this test's database, because others have theirs on the same server."""
    found, mark = [], uuid4().hex
    with redis.Redis.from_url(settings.REDIS_URL) as own, own.monitor() as monitor:
        yield found
        redis_client().echo(mark)
        while mark not in (each := monitor.next_command())["command"]:
            if each["db"] == redis_client().connection_pool.connection_kwargs["db"]:
                address = f"{each['client_address']}:{each['client_port']}"
                found.append((address, each["command"].partition(" ")[0].upper()))
