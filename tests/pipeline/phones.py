"""Android phones and iPhones of the sandboxes, subscribed to a channel with valid credentials."""

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from django.db import transaction

from channels_app.models import ProviderCredential
from channels_app.services import provider_credentials_store
from notifications_app import tasks
from notifications_app.pipeline import connections, dispatch
from notifications_app.pipeline import quota as quotas
from pushsvc.common.store.redis_client import redis_client
from sandbox.apns.devices import DEFAULT_TEAM, DEFAULT_TOPIC
from subscriptions_app.addresses import Address
from subscriptions_app.devices.services import subscription_unsubscribe
from tests import factories
from tests.factories import GOOGLE_PROJECT
from tests.pipeline import support


def stop_clock(monkeypatch):
    """Redis's clock stands still, so no project is granted more calls than at first."""
    seconds, microseconds = redis_client().time()
    now = f"{{{seconds}, {microseconds}}}"
    script = quotas._TAKE
    text = script.body.replace("redis.call('TIME')", now)
    monkeypatch.setattr(quotas, "_TAKE", replace(script, body=text))


def store_google(fcm, channel, project=GOOGLE_PROJECT):
    """Stores a new service account of the project for the channel; `fcm.revoke` revokes it."""
    account = fcm.service_account(project)
    provider_credentials_store(channel=channel, fcm_service_account=json.dumps(account))
    _ready("android", channel)
    return account


def store_apple(apns, channel, *, topic=DEFAULT_TOPIC, team=DEFAULT_TEAM, key=None, **changed):
    """Stores a key for the channel, a new one if none is given; `key.behave` revokes it."""
    key = key or apns.key(team, topic)
    provider_credentials_store(channel=channel, apns_key=json.dumps(key.credential | changed))
    _ready("ios", channel)
    return key


def _ready(platform, channel):
    channel.refresh_from_db()
    connections.client(platform)  # made here, so that not every thread of a test makes one


def credential(channel):
    return ProviderCredential.objects.get(channel=channel)


def prove(fcm, channel, project=GOOGLE_PROJECT):
    """FCM accepts a message of the channel's service account for the project, to a phone that
    then unsubscribes. From now on the account is granted the project's full rate."""
    ((device, _),) = factories.subscribe_androids(fcm, channel, 1, project)
    assert send(channel, "android").delivered_count == 1
    subscription_unsubscribe(channel=channel, address=Address.of("android", device.token))


def plan(channel, *platforms, **fields):
    """A notification that is planned, and not yet delivered to any recipient."""
    notification = factories.make_notification(channel, target_platforms=list(platforms), **fields)
    support.plan(notification)
    return notification


def deliver(notification, *platforms):
    for platform in platforms:
        dispatch.deliver(platform, seconds=30)
    notification.refresh_from_db()


def send(channel, *platforms, **fields):
    """Plans and delivers as far as possible at once."""
    notification = plan(channel, *platforms, **fields)
    deliver(notification, *platforms)
    return notification


def send_again(notification, *platforms):
    """Delivers after the waits of deferred recipients."""
    support.make_due(notification)
    deliver(notification, *platforms)


def deliver_to_the_end(notification, platform, seconds=60):
    """Delivers as worker and beat do together, until the notification is sent or failed."""
    end = time.monotonic() + seconds
    while notification.status == "processing":
        assert time.monotonic() < end, "it did not end"
        tasks.tick()
        deliver(notification, platform)
        time.sleep(0.02)


@contextlib.contextmanager
def meanwhile(call):
    """Makes the call in another thread, on its own database connection, until both the block and
    the call have ended."""

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(support.closing_connection(call))
        yield
        running.result()


@contextlib.contextmanager
def held(row):
    """Locks the row until the block ends; then the block's changes are committed."""
    with transaction.atomic():
        type(row).objects.select_for_update().get(pk=row.pk)
        yield


def received(devices):
    """How many messages each device was sent."""
    return [device.totals().taken for device, _ in devices]


class Provider:
    """Google or Apple, with what both can do."""

    def __init__(self, platform, service):
        self.platform = platform
        self.service = service

    def store(self, channel, **how):
        store = store_google if self.platform == "android" else store_apple
        return store(self.service, channel, **how)

    def devices(self, channel, count):
        subscribe = (
            factories.subscribe_androids
            if self.platform == "android"
            else factories.subscribe_iphones
        )
        return subscribe(self.service, channel, count)

    def revoke(self, credential):
        if self.platform == "android":
            self.service.revoke(credential)
        else:
            credential.behave("revoked")

    def refuse(self, credential, times):
        """Refuses the next calls. A pause needs two refusals, because the first is confirmed."""
        if self.platform == "android":
            project = self.service.project(credential["project_id"])
            project.messaging.behave("permission_denied", times=times)
        else:
            credential.behave("revoked", times=times)

    def block(self, credential, times=None):
        """A proxy in front of the push service answers."""
        if self.platform == "android":
            self.service.project(credential["project_id"]).messaging.behave("blocked", times=times)
        else:
            credential.behave("blocked", times=times)
