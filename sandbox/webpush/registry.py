"""All subscribers of one push service, and the sender keys that it has received."""

import secrets

from cryptography.hazmat.primitives.asymmetric import ec

from sandbox.webpush import vapid
from sandbox.webpush.browsers import Browser, BrowserDevice
from sandbox.webpush.devices import Device, MismatchAnswer, Subscriber
from sandbox.webpush.encryption import UserAgentKeys
from sandbox.webpush.journal import Journal

_AUTH_LENGTH = 16


class Devices:
    """All devices. The journal keeps devices over restarts, but not receipts.

    Devices of real browsers are not kept: a browser with an unknown id subscribes again.
    """

    def __init__(self, origin: str, journal: Journal) -> None:
        self._origin = origin
        self._journal = journal
        self._sender_keys: set[bytes] = set()
        saved = journal.load(self._endpoint)
        self._by_id: dict[str, Subscriber] = {device.id: device for device in saved}

    def add(
        self,
        application_server_key: str | None = None,
        mismatch_response: MismatchAnswer = MismatchAnswer.FORBIDDEN,
        *,
        is_bridged: bool = False,
    ) -> Device:
        """Subscribes a new browser. Raises ValueError if the key is not a P-256 point.

        With an `application_server_key` the subscription is restricted to it (RFC 8292 §4).
        """
        key = _checked_key(application_server_key)
        id_ = secrets.token_hex(16)
        device = Device(
            id_, self._endpoint(id_), key, mismatch_response, is_bridged, keys=_new_keys()
        )
        self._by_id[id_] = device
        self._journal.write_added(device)
        return device

    def add_for(
        self, browser: Browser, channel_id: str, application_server_key: str | None
    ) -> BrowserDevice:
        """Subscribes a real browser with an id that it chose. Raises ValueError as `add` does."""
        key = _checked_key(application_server_key)
        id_ = secrets.token_hex(16)
        device = BrowserDevice(
            id_, self._endpoint(id_), key, browser=browser, channel_id=channel_id
        )
        self._by_id[id_] = browser.devices[channel_id] = device
        return device

    def find(self, device_id: str) -> Subscriber | None:
        return self._by_id.get(device_id)

    def ids(self) -> list[str]:
        return list(self._by_id)

    def all(self) -> list[Subscriber]:
        return list(self._by_id.values())

    def delete(self, device: Subscriber) -> None:
        """Ends the subscription: its endpoint responds with 410. Safe to repeat."""
        device.is_deleted = True
        if isinstance(device, Device):
            self._journal.write_deleted(device)

    def clear(self) -> None:
        self._by_id.clear()
        self._sender_keys.clear()
        self._journal.clear()

    def is_first_use(self, sender_key: bytes) -> bool:
        """Whether no earlier message was encrypted with this key. Remembers the key."""
        # Half of the x coordinate is enough to distinguish keys, and takes a quarter of the memory.
        mark = sender_key[1:17]
        if mark in self._sender_keys:
            return False
        self._sender_keys.add(mark)
        return True

    def _endpoint(self, device_id: str) -> str:
        return f"{self._origin}/push/{device_id}"


def _checked_key(application_server_key: str | None) -> str | None:
    """The key without the padding that Firefox sends. Raises ValueError."""
    if application_server_key is None:
        return None
    key = application_server_key.rstrip("=")
    vapid.public_key(key)
    return key


def _new_keys() -> UserAgentKeys:
    private_key = ec.generate_private_key(ec.SECP256R1())
    return UserAgentKeys.of(private_key, secrets.token_bytes(_AUTH_LENGTH))
