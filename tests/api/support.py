"""The interface as its clients use it, with a channel of Alice's or Bob's."""

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import redis
from django.conf import settings
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
    """Alice or Bob, each with a channel and a key for it."""

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
        """The client of a device of the channel, which sends no API key."""
        return Client(REMOTE_ADDR=headers.pop("address", "203.0.113.7")).post(
            path,
            body,
            content_type="application/json",
            headers={"X-Channel-ID": str(self.channel.id)} | headers,
        )

    def subscribe(self, body, **headers):
        return self.device("/subscribe", body, **headers)


def owner_of(channel, scopes=("send", "read", "manage", "subscribers")):
    return Owner(channel, make_key(channel, scopes=list(scopes)))


def accepted(owner, body, **headers):
    """Sends a request that must be accepted; returns the notification."""
    response = owner.send(body, **headers)
    assert response.status_code == 202, response.content
    return Notification.objects.get(id=response.json()["notification_id"])


def errors(response, status=400):
    """[(attr, code)] of a problem. Checks its general shape, too."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    return [(error["attr"], error["code"]) for error in problem.get("errors", [])]


def anonymous(response):
    """The problem without the id of its request."""
    problem = response.json()
    return {name: value for name, value in problem.items() if name != "request_id"}


def code(response, status):
    errors(response, status)
    return response.json()["code"]


@contextmanager
def asked_of_redis():
    """[(address of the connection, command)], complete when the block has ended. Only commands
    to this test's database: other tests use others on the same server."""
    found, mark = [], uuid4().hex
    with redis.Redis.from_url(settings.REDIS_URL) as own, own.monitor() as monitor:
        yield found
        redis_client().echo(mark)
        while mark not in (each := monitor.next_command())["command"]:
            if each["db"] == redis_client().connection_pool.connection_kwargs["db"]:
                address = f"{each['client_address']}:{each['client_port']}"
                found.append((address, each["command"].partition(" ")[0].upper()))


def may_be_null(field, schemas):
    """Whether the API's document says so of the field of a body."""
    referred = [each["$ref"].rpartition("/")[2] for each in field.get("allOf", ())]
    shapes = (field, *field.get("oneOf", ()), *map(schemas.get, referred))
    return any(each.get("nullable") for each in shapes)
