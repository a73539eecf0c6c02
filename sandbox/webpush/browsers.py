"""Real browsers that use the sandbox as their push service, and the messages that wait for them."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from typing_extensions import override

from pushsvc.common import base64url
from sandbox.webpush.devices import PushMessage, Subscriber
from sandbox.webpush.encryption import EncryptedRecord, sender_public_key


class Link(Protocol):
    """The connection of a browser. Any thread may call both methods."""

    def send(self, message: Mapping[str, object]) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Browser:
    """One browser with the id that the service gave it (autopush: uaid), connected or not.

    A message waits until the browser acknowledges it or its time is over. Only the sandbox's loop
    may call the methods.
    """

    uaid: str
    devices: dict[str, "BrowserDevice"] = field(default_factory=dict)
    _link: Link | None = None
    _waiting: list[tuple["BrowserDevice", PushMessage]] = field(default_factory=list)

    def connect(self, link: Link) -> None:
        """Sends all waiting messages again, and closes an older connection."""
        if self._link:
            self._link.close()
        self._link = link
        self._waiting = [each for each in self._waiting if not each[1].is_over(time.time())]
        for device, message in self._waiting:
            link.send(_notification(device, message))

    def disconnect(self, link: Link) -> None:
        if self._link is link:
            self._link = None

    def close(self) -> None:
        if self._link:
            self._link.close()

    def take(self, device: "BrowserDevice", message: PushMessage) -> None:
        """Sends the message. One with a TTL of 0 does not wait, and only one message of each topic
        waits (RFC 8030 §5.2 and §5.4)."""
        if message.topic is not None:
            self._waiting = [
                each
                for each in self._waiting
                if (each[0], each[1].topic) != (device, message.topic)
            ]
        self._waiting.append((device, message))
        if self._link:
            self._link.send(_notification(device, message))

    def acknowledge(self, message_id: str, code: int) -> None:
        """Removes an acknowledged message. Ignores unknown ones."""
        for _, message in self._waiting:
            if message.id == message_id:
                message.receipt.ack_code = code
        self._waiting = [each for each in self._waiting if each[1].id != message_id]

    def unregister(self, channel_id: str) -> "BrowserDevice | None":
        device = self.devices.pop(channel_id, None)
        self._waiting = [each for each in self._waiting if each[0] is not device]
        return device


@dataclass(slots=True, eq=False)
class BrowserDevice(Subscriber):
    """One subscription of a real browser. Only the browser has the keys."""

    browser: Browser = field(kw_only=True)
    channel_id: str = field(kw_only=True)

    def is_for(self, application_server_key: str | None) -> bool:
        given = application_server_key and application_server_key.rstrip("=")
        return self.application_server_key == given

    @override
    def read(self, record: EncryptedRecord) -> bytes | None:
        sender_public_key(record)
        return None

    @override
    def take(self, message: PushMessage) -> None:
        self.browser.take(self, message)


class Browsers:
    """All known browsers."""

    def __init__(self) -> None:
        self._by_uaid: dict[str, Browser] = {}

    def known_or_new(self, uaid: object) -> Browser:
        """The browser with this id. If it is unknown, a new one: then the browser drops its
        subscriptions."""
        browser = self._by_uaid.get(uaid) if isinstance(uaid, str) else None
        if browser is None:
            browser = Browser(secrets.token_hex(16))
            self._by_uaid[browser.uaid] = browser
        return browser

    def disconnected(self, browser: Browser, link: Link) -> None:
        """Forgets a browser without subscriptions, because Firefox then connects without its id."""
        browser.disconnect(link)
        if not browser.devices:
            self._by_uaid.pop(browser.uaid, None)

    def forget(self, browser: Browser) -> None:
        """Forgets the browser: its endpoints respond with 410. It reconnects, gets a new id, and
        drops its subscriptions. Any thread may call it. Safe to repeat."""
        self._by_uaid.pop(browser.uaid, None)
        for device in list(browser.devices.values()):
            device.is_deleted = True
        browser.close()

    def clear(self) -> None:
        for browser in list(self._by_uaid.values()):
            self.forget(browser)


def _notification(device: BrowserDevice, message: PushMessage) -> dict[str, object]:
    return {
        "messageType": "notification",
        "channelID": device.channel_id,
        "version": message.id,
        "data": base64url.encode(message.body),
        "headers": {"encoding": "aes128gcm"},
    }
