"""An Android phone with the app of docs/fcm.md, Google's sandbox, and the whole service."""

import json
import time
import urllib.request
from dataclasses import dataclass
from typing import Any

import jwt
import pytest
from django.test import override_settings

from channels_app.identity_keys import identity_key_create
from channels_app.models import Channel
from channels_app.services import provider_credentials_store
from notifications_app.models import Notification
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.models import Subscription
from tests.android import build
from tests.android.network import Network
from tests.browser.database import emptied_at_the_end
from tests.factories import GOOGLE_PROJECT, make_channel, make_key
from tests.pipeline.processes import running_web

_PATIENCE = 60.0


def until(what, message):
    """What `what()` returns, as soon as it is true."""
    end = time.monotonic() + _PATIENCE
    while not (found := what()):
        assert time.monotonic() < end, message()
        time.sleep(0.05)
    return found


class Phone:
    """A phone. Its methods are the person, the system and Google's services; `call` is the app."""

    def __init__(self, process):
        self._process = process
        self._network = self._channel = None

    def install(self, network, channel):
        """The app is new, and not started yet."""
        self._network, self._channel = network, channel
        self.do("install")

    def do(self, command, **fields):
        self._process.stdin.write(json.dumps({"do": command} | fields) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("phone: "):
                answer = json.loads(line.removeprefix("phone: "))
                assert "error" not in answer, answer["error"]
                return answer.get("value")
        raise AssertionError("the phone ended")

    def start(self, address=None):
        """The app's process starts. Firebase hands over the address, None if it is offline."""
        self.do("address", address=address)
        self.do("start", service=self._network.url, channel=str(self._channel.id))

    def call(self, name, *arguments):
        """The app calls the kit, which returns at once. `result` waits for the callback."""
        self.do("call", name=name, arguments=arguments)

    def result(self, name, *arguments):
        before = len(self.look()["results"])
        self.call(name, *arguments)
        return self.next_result(name, before)

    def next_result(self, name, before=0):
        def found():
            return [each for each in self.look()["results"][before:] if each["call"] == name]

        return until(found, lambda: f"{name} has no result: {self.look()}")[0]

    def look(self):
        """What there is to see, once the main thread has nothing to do."""
        seen = self.do("look")
        assert seen["crashes"] == []
        return seen

    def status(self):
        return self.result("status")

    def idle(self):
        """Returns when nothing is left to send."""
        until(lambda: self.status()["waiting"] == 0, lambda: f"it waits: {self.look()}")

    def receive(self, message):
        """Firebase hands the message to the app. Returns what is shown then."""
        self.do("receive", message=message)
        tag = message["data"]["notification_id"]
        tag = message.get("android", {}).get("notification", {}).get("tag", tag)

        def shown():
            return [each for each in self.look()["shown"] if each["tag"] == tag]

        return until(shown, lambda: f"nothing is shown: {self.look()}")[0]


@dataclass
class Shop:
    channel: Channel
    google: Any
    url: str
    key: str

    def rows(self):
        return list(Subscription.objects.filter(channel=self.channel).order_by("id"))

    def row(self):
        [row] = self.rows()
        return row

    def tags(self):
        return set(self.row().tags.values_list("tag", flat=True))

    def person(self):
        person = self.row().person
        return person and person.external_id

    def device(self, **kind):
        return self.google.register(GOOGLE_PROJECT, **kind)

    def identity_token(self, external_id):
        claims = {"sub": external_id, "aud": str(self.channel.id), "exp": int(time.time()) + 600}
        return jwt.encode(claims, self._secret, "HS256")

    def __post_init__(self):
        _, self._secret = identity_key_create(channel=self.channel, public_key=None)

    def send(self, device, **content):
        """Sends to Android. Returns the notification, and the message as the device gets it."""
        body = json.dumps({"body": "Fresh bread", "target_platforms": ["android"]} | content)
        headers = {"Authorization": f"Key {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/send-notification", body.encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            notification = Notification.objects.get(pk=json.load(response)["notification_id"])
        before = len(device.receipts)
        until(
            lambda: len(device.receipts) > before or self._is_over(notification), lambda: "not sent"
        )
        until(lambda: self._is_over(notification), lambda: "it does not end")
        assert notification.delivered_count == 1, notification.status
        return notification, json.loads(json.dumps(dict(device.receipts[-1].message)))

    def _is_over(self, notification):
        notification.refresh_from_db()
        return notification.status in ("sent", "failed")

    def events(self, notification):
        """How many recipients reported `received`, `clicked` and `dismissed`, and which buttons."""
        request = urllib.request.Request(
            f"{self.url}/notification/{notification.pk}/details",
            headers={"Authorization": f"Key {self.key}"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            found = json.load(response)
        counts = [found[f"{event}_count"] for event in ("received", "clicked", "dismissed")]
        return (*counts, found["actions_clicked"])


@pytest.fixture(scope="module")
def transactional_db(django_db_setup, django_db_blocker):
    """Emptied when the module ends, because the processes work on between its tests."""
    with emptied_at_the_end(django_db_blocker):
        yield


@pytest.fixture(scope="module")
def _service(_fcm, transactional_db, tmp_path_factory):
    log = tmp_path_factory.mktemp("service") / "log"
    with override_settings(FCM_API_BASE=_fcm.origin, GOOGLE_TOKEN_URI=_fcm.token_uri):
        redis_client().flushdb()
        with running_web(log, "worker-plan", "worker-android", "beat") as address:
            yield address


@pytest.fixture(scope="module")
def _phone(request, tmp_path_factory):
    folder = build.built(request.config.cache)
    log = tmp_path_factory.mktemp("phone") / "log"
    with log.open("w+") as errors:
        process = build.started(folder, errors)
        try:
            yield Phone(process)
        finally:
            process.stdin.close()
            process.wait(60)
            process.stdout.close()
            errors.seek(0)
            print(errors.read())  # noqa: T201 (pytest shows it where a test failed)


@pytest.fixture
def shop(_service, _fcm):
    channel = make_channel()
    account = json.dumps(_fcm.service_account(GOOGLE_PROJECT))
    provider_credentials_store(channel=channel, fcm_service_account=account)
    channel.refresh_from_db()
    return Shop(channel, _fcm, _service, make_key(channel))


@pytest.fixture
def network(_service):
    network = Network(_service)
    yield network
    network.down()


@pytest.fixture
def phone(_phone, network, shop):
    _phone.install(network, shop.channel)
    yield _phone
    _phone.look()  # nothing crashed
