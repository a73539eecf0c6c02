"""The service over HTTP, as the owner of a channel and of a site uses it."""

import json
import os
import urllib.request
from dataclasses import dataclass
from unittest import mock
from urllib.error import HTTPError, URLError

from bench.ports import own_port
from channels_app.models import Channel
from notifications_app.models import Notification
from pushsvc.common.worker import liveness
from sandbox import BrowserDevice, WebSandbox
from subscriptions_app.models import Subscription
from tests.browser.firefox.site import Site
from tests.pipeline.support import until

_PROCESSES = ("web", "worker-plan", "worker-web", "beat")


@dataclass(frozen=True)
class Service:
    """The address of its web process, and the push service that it trusts."""

    url: str
    push_service: WebSandbox

    @classmethod
    def started(cls, processes, push_service):
        port = own_port()
        with mock.patch.dict(os.environ, PORT=str(port), GRANIAN_HOST="127.0.0.1"):
            web, *_ = [processes.start(name) for name in _PROCESSES]
        service = cls(f"http://127.0.0.1:{port}", push_service)
        until(lambda: service._is_up() or web.poll() is not None, seconds=60)
        assert web.poll() is None, "the web process has ended"
        until(_workers_are_up, seconds=60)
        return service

    def call(self, url, headers=None, body=None):
        """The JSON of the answer; raises HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers or {})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def _is_up(self):
        try:
            return self.call(f"{self.url}/healthz")
        except HTTPError:
            raise  # It answers, but with an error: waiting does not help.
        except URLError:
            return False


def _workers_are_up():
    live = liveness(("plan", "web"))
    return live is not None and live.has_ticked and all(live.processes.values())


@dataclass(frozen=True)
class Owner:
    """Owns a channel, a key for it, and a site with a page for subscribing."""

    service: Service
    channel: Channel
    key: str
    site: Site

    def send(self, **fields):
        """The notification's id."""
        answer = self.call("/send-notification", {"body": "Fresh bread"} | fields)
        return answer["notification_id"]

    def send_as_the_guide_says(self):
        url, headers, body = self.site.curl(self.key)
        return self.service.call(url, headers, body)["notification_id"]

    def subscribes(self, body):
        """Subscribes an endpoint, as anybody who knows the channel's id can."""
        headers = {"X-Channel-ID": str(self.channel.id), "Content-Type": "application/json"}
        return self.service.call(f"{self.service.url}/subscribe", headers, body)

    def change(self, notification_id, action):
        """`action`: "pause" or "resume"."""
        self.call(f"/notification/{notification_id}/{action}", {})

    def read(self, notification_id):
        """The notification as the API answers it."""
        return self.call(f"/notification/{notification_id}")

    def is_sent(self, notification_id):
        return self.read(notification_id)["status"] == "sent"

    def outcome(self, notification_id):
        """(recipients, delivered, bounced) once the notification is sent."""
        until(lambda: self.is_sent(notification_id))
        said = self.read(notification_id)
        return said["recipient_count"], said["delivered_count"], said["bounced_count"]

    def reports(self, notification_id):
        """(received, clicked, dismissed): the counts of reported events."""
        fields = ("received_count", "clicked_count", "dismissed_count")
        return Notification.objects.values_list(*fields).get(pk=notification_id)

    def subscriber_count(self):
        return self.call(f"/channel/{self.channel.id}")["subscriber_count"]

    def subscriptions(self):
        """All subscriptions, also expired ones, in the order in which they were made."""
        return list(Subscription.objects.filter(channel=self.channel).order_by("id"))

    def subscription(self):
        """The only one there ever was."""
        (subscription,) = self.subscriptions()
        return subscription

    def device(self) -> BrowserDevice:
        """The push service's device of the only subscription."""
        address = self.subscription().address
        devices = self.service.push_service.browser_devices()
        (device,) = [each for each in devices if each.endpoint == address]
        return device

    def call(self, path, body=None):
        headers = {"Authorization": f"Key {self.key}", "Content-Type": "application/json"}
        return self.service.call(self.service.url + path, headers, body)
