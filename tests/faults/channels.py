"""A channel of the system, its devices in the sandboxes, and what is sent to them."""

import json
import time
from hashlib import sha256
from urllib.parse import urlsplit
from uuid import UUID

from local.supervisor.http import UnreachableError
from pushsvc.common.endpoints import TOKEN_SERVICES
from pushsvc.common.ids import uuid7
from sandbox.apns.devices import DEFAULT_TEAM, DEFAULT_TOPIC
from tests.faults.scale import patience

_TOO_LONG = 90.0


class Channel:
    """`devices`: the subscribed devices by subscription id, in the order of these ids."""

    def __init__(self, system, id, api_key):
        self.system = system
        self.id = id
        self.api_key = api_key
        self.project = f"shop-{UUID(id).hex[-20:]}"
        self.devices = {}
        self.platform_of = {}

    # Devices

    def subscribe(self, count, platform="web", *, sandbox=None, push_service=None):
        """Subscribes new devices. `sandbox`: another push service. `push_service`: the name that
        the rows give it; `other` is an unknown host."""
        made = [self._made(platform, sandbox) for _ in range(count)]
        return self.add(made, platform, push_service=push_service)

    def add(self, devices, platform="web", *, push_service=None):
        """Writes the rows of many subscriptions at once; [(subscription id, device)]."""
        ids = sorted(uuid7() for _ in devices)
        addresses = [_address(platform, device) for device in devices]
        is_web = platform == "web"
        with self.system.connect() as connection:
            connection.execute(
                _SUBSCRIBE,
                {
                    "channel": self.id,
                    "platform": platform,
                    "ids": ids,
                    "addresses": addresses,
                    "digests": [sha256(address.encode()).digest() for address in addresses],
                    "p256dh": [device.p256dh if is_web else "" for device in devices],
                    "auth": [device.auth if is_web else "" for device in devices],
                    "services": [
                        push_service or _service(platform, address) for address in addresses
                    ],
                    "is_web": is_web,
                },
            )
            connection.execute(
                _COUNT.format(column=f"{platform}_subscribers"),
                {"channel": self.id, "count": len(devices)},
            )
        pairs = list(zip(ids, devices, strict=True))
        self.devices.update(pairs)
        self.platform_of.update(dict.fromkeys(ids, platform))
        return pairs

    def _made(self, platform, sandbox):
        sandboxes = self.system.sandboxes
        if platform == "web":
            return (sandbox or sandboxes.web).subscribe()
        if platform == "android":
            return sandboxes.fcm.register(self.project)
        return sandboxes.apns.register()

    def subscribe_again(self, subscription_id):
        """Subscribes as the device does at its next visit, through the API."""
        device = self.devices[subscription_id]
        platform = self.platform_of[subscription_id]
        body = {"platform": platform}
        if platform == "web":
            body |= device.subscription
        else:
            body["provider_token"] = device.token
        reply = self._public("/subscribe", body)
        assert reply.status == 200, reply
        assert reply.body["subscriptionId"] == str(subscription_id)

    def subscribe_endpoint(self, endpoint):
        """Subscribes an endpoint that belongs to no device of ours, as anybody who knows the
        channel's id can."""
        keys = self.system.sandboxes.web.subscribe().subscription["keys"]
        body = {"platform": "web", "endpoint": endpoint, "keys": keys}
        reply = self._public("/subscribe", body)
        assert reply.status == 201, reply

    def unsubscribe(self, subscription_id):
        device = self.devices[subscription_id]
        platform = self.platform_of[subscription_id]
        address = _address(platform, device)
        name = "endpoint" if platform == "web" else "provider_token"
        reply = self._public("/unsubscribe", {"platform": platform, name: address})
        assert reply.status == 200, reply

    # Credentials

    def store_google(self):
        """Stores a new service account and returns it, so that it can be revoked."""
        account = self.system.sandboxes.fcm.service_account(self.project)
        self.store(fcm_service_account=json.dumps(account))
        return account

    def store_apple(self):
        key = self.system.sandboxes.apns.key(DEFAULT_TEAM, DEFAULT_TOPIC)
        self.store(apns_key=json.dumps(key.credential))
        return key

    def store(self, **entries):
        reply = self._call("PUT", f"/channel/{self.id}/providers", {"providers_config": entries})
        assert reply.status == 200, reply

    def pause(self, platform):
        """(code, the push service's words) of the platform's pause, or None."""
        paused = self.system.rows(
            "SELECT paused_code, paused_detail FROM channels_app_providercredential"
            " WHERE channel_id = %s AND platform = %s AND paused_at IS NOT NULL",
            [self.id, platform],
        )
        return paused[0] if paused else None

    # Notifications

    def send(self, *platforms, **fields):
        """Sends with an idempotency key, and repeats the request until it is accepted. In `make
        soak`, a fast machine sends more than the key may."""
        body = {"target_platforms": list(platforms) or ["web"], **fields}
        key = str(uuid7())
        end = time.monotonic() + patience(_TOO_LONG)
        while True:
            reply = self.ask(key, **body)
            if reply is not None and reply.status == 202:
                return UUID(reply.body["notification_id"])
            is_limited = reply is not None and reply.body["code"] == "rate_limited"
            assert reply is None or is_limited or reply.status in (409, 503), reply
            assert time.monotonic() < end, "nobody takes the notification"
            time.sleep(0.1)

    def ask(self, idempotency_key, **body):
        """One request to send; None if there was no answer."""
        key = {"Idempotency-Key": idempotency_key}
        try:
            return self._call("POST", "/send-notification", {"body": "Fresh bread"} | body, key)
        except UnreachableError:
            return None

    def cap(self, *caps):
        """Limits how many sends may contact a device: (limit, hours) of each cap."""
        given = [{"limit": limit, "hours": hours} for limit, hours in caps]
        path = f"/channel/{self.id}/delivery-settings"
        assert self._call("PUT", path, {"caps": given}).status == 200

    def cancel(self, notification_id):
        return self._call("DELETE", f"/cancel-notification/{notification_id}").status

    def change(self, notification_id, act):
        """`act`: `pause`, `resume` or `stop`. The answer's status."""
        return self._call("POST", f"/notification/{notification_id}/{act}").status

    def edit(self, notification_id, **changes):
        """The answer's status."""
        return self._call("PATCH", f"/notification/{notification_id}", changes).status

    def read(self, notification_id):
        reply = self._call("GET", f"/notification/{notification_id}")
        assert reply.status == 200, reply
        return reply.body

    def statistics(self):
        reply = self._call("GET", f"/channel/{self.id}")
        assert reply.status == 200, reply
        return reply.body

    def days(self):
        """The statistics of the last 30 days."""
        reply = self._call("GET", f"/channel/{self.id}/statistics?interval=day")
        assert reply.status == 200, reply
        return reply.body

    def _call(self, method, path, body=None, headers=None):
        given = {"Authorization": f"Key {self.api_key}", **(headers or {})}
        return self.system.service.request(method, path, body, given)

    def _public(self, path, body):
        return self.system.service.request("POST", path, body, {"X-Channel-ID": self.id})


def _address(platform, device):
    return device.endpoint if platform == "web" else device.token


def _service(platform, address):
    if platform != "web":
        return TOKEN_SERVICES[platform]
    return urlsplit(address).netloc


_SUBSCRIBE = """
INSERT INTO subscriptions_app_subscription
  (id, channel_id, platform, address, address_sha256, p256dh, auth, vapid_key_id, push_service,
   attributes, expired_code)
SELECT given.id, %(channel)s, %(platform)s, address, digest, p256dh, auth, vapid.id, service,
  '{}', ''
FROM unnest(%(ids)s::uuid[], %(addresses)s::text[], %(digests)s::bytea[], %(p256dh)s::text[],
            %(auth)s::text[], %(services)s::text[])
  AS given (id, address, digest, p256dh, auth, service)
LEFT JOIN channels_app_vapidkey vapid
  ON %(is_web)s AND vapid.channel_id = %(channel)s AND vapid.retired_at IS NULL
"""

_COUNT = """
INSERT INTO channels_app_channelcounter AS counter (channel_id, shard, {column})
VALUES (%(channel)s, 0, %(count)s)
ON CONFLICT (channel_id, shard) DO UPDATE SET {column} = counter.{column} + %(count)s
"""
