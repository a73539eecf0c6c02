"""Android phones and iPhones of the sandboxes, subscribed to a channel with good credentials."""

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

from django.db import transaction

from channels_app.models import ProviderCredential
from channels_app.services import provider_credentials_store
from notifications_app import tasks
from notifications_app.pipeline import connections, dispatch
from pushsvc.sandbox.apns.devices import DEFAULT_TEAM, DEFAULT_TOPIC
from subscriptions_app.services import subscription_unsubscribe
from tests import factories
from tests.factories import GOOGLE_PROJECT
from tests.pipeline import support


def store_google(fcm, channel, project=GOOGLE_PROJECT):
    """A new service account of the project, stored for the channel; `fcm.revoke` ends it."""
    account = fcm.service_account(project)
    provider_credentials_store(channel=channel, fcm_service_account=json.dumps(account))
    _ready("android", channel)
    return account


def store_apple(apns, channel, *, topic=DEFAULT_TOPIC, team=DEFAULT_TEAM, key=None, **changed):
    """A key, new where none is given, stored for the channel; `key.behave` ends it."""
    key = key or apns.key(team, topic)
    provider_credentials_store(channel=channel, apns_key=json.dumps(key.credential | changed))
    _ready("ios", channel)
    return key


def _ready(platform, channel):
    channel.refresh_from_db()
    connections.client(platform)  # made here, so that threads of a test do not each make one


def credential(channel):
    return ProviderCredential.objects.get(channel=channel)


def prove(fcm, channel, project=GOOGLE_PROJECT):
    """FCM takes a message of the channel's service account for the project, to a phone that then
    leaves: from now on the account is granted what the project has."""
    ((device, _),) = factories.subscribe_androids(fcm, channel, 1, project)
    assert send(channel, "android").delivered_count == 1
    subscription_unsubscribe(channel=channel, platform="android", address=device.token)


def plan(channel, *platforms, **fields):
    """A notification that is planned, and not yet delivered to anybody."""
    notification = factories.make_notification(channel, target_platforms=list(platforms), **fields)
    support.plan(notification)
    return notification


def deliver(notification, *platforms):
    for platform in platforms:
        dispatch.deliver(platform, seconds=30)
    notification.refresh_from_db()


def send(channel, *platforms, **fields):
    """Plans and delivers as far as it goes at once."""
    notification = plan(channel, *platforms, **fields)
    deliver(notification, *platforms)
    return notification


def send_again(notification, *platforms):
    """Once the waits of deferred recipients are over."""
    support.make_due(notification)
    deliver(notification, *platforms)


def deliver_to_the_end(notification, platform, seconds=60):
    """As worker and beat do between them, until the notification is sent or failed."""
    end = time.monotonic() + seconds
    while notification.status == "processing":
        assert time.monotonic() < end, "it did not end"
        tasks.tick()
        deliver(notification, platform)
        time.sleep(0.02)


@contextlib.contextmanager
def meanwhile(call):
    """Makes the call in another thread, on a database connection of its own, until the block and
    the call have both ended."""

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(support.closing_connection(call))
        yield
        running.result()


@contextlib.contextmanager
def held(row):
    """Nobody else writes the row before the block ends; then what the block did is committed."""
    with transaction.atomic():
        type(row).objects.select_for_update().get(pk=row.pk)
        yield


def received(devices):
    """How many messages each device was given."""
    return [device.totals().taken for device, _ in devices]


class Provider:
    """Google or Apple, by what both can do."""

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

    def refuse_once(self, credential):
        if self.platform == "android":
            project = self.service.project(credential["project_id"])
            project.messaging.behave("permission_denied", times=1)
        else:
            credential.behave("unrelated", times=1)
