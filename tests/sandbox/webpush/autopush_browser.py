"""The browser's end of autopush's protocol, message by message."""

import asyncio
import json
import uuid
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from cryptography.hazmat.primitives.asymmetric import ec

from sandbox.webpush.encryption import UserAgentKeys
from tests.sandbox.webpush.sender import Sender, encrypted, post


class AutopushBrowser:
    """Its connection is open until the block ends; `uaid` survives it."""

    def __init__(self, sandbox) -> None:
        self._sandbox = sandbox
        self._loop = asyncio.new_event_loop()
        self._session: Any = None
        self._socket: Any = None
        self.uaid = None

    def __enter__(self):
        self._session = self._run(_session())
        self._socket = self._run(self._session.ws_connect(self._sandbox.browser_url))
        return self

    def __exit__(self, *_):
        self._run(self._socket.close())
        self._run(self._session.close())
        self._session = self._socket = None

    def discard(self):
        self._loop.close()

    def say(self, message_type, **fields):
        self.say_raw(json.dumps({"messageType": message_type} | fields))

    def say_raw(self, text):
        self._run(self._socket.send_str(text))

    def say_bytes(self, data):
        self._run(self._socket.send_bytes(data))

    def hear(self):
        """The next message; TypeError once the connection is closed."""
        return json.loads(self._run(self._socket.receive_str(timeout=60)))

    def end(self):
        """Waits until the push service closes the connection; the code that it sent."""
        frame = self._run(self._socket.receive(timeout=60))
        assert frame.type is aiohttp.WSMsgType.CLOSE, frame
        return frame.data

    def hello(self):
        self.say("hello", use_webpush=True, **({"uaid": self.uaid} if self.uaid else {}))
        reply = self.hear()
        assert (reply["messageType"], reply["status"]) == ("hello", 200)
        self.uaid = reply["uaid"]
        return reply

    def register(self, key=None, channel_id=None):
        channel_id = channel_id or str(uuid.uuid4())
        self.say("register", channelID=channel_id, **({"key": key} if key else {}))
        return self.hear()

    def is_quiet(self):
        """Whether no message comes before the answer to a ping."""
        self.say_raw("{}")
        return self.hear() == {}

    def _run(self, awaitable):
        return self._loop.run_until_complete(awaitable)


async def _session():
    return aiohttp.ClientSession()


class Letters:
    """Sends to endpoints of browsers. The keys are made up, because the push service cannot
    decrypt."""

    def __init__(self, endpoint, sender=None) -> None:
        self.endpoint = endpoint
        self.sender = sender or Sender()
        self.keys = UserAgentKeys.of(ec.generate_private_key(ec.SECP256R1()), b"a" * 16)

    def send(self, body=None, **changes):
        """The answer, and the body that was sent."""
        device: Any = self  # a message with everything that is required
        body = encrypted(device) if body is None else body
        return post(self.endpoint, self.sender.headers(device, **changes), body), body

    @property
    def id(self):
        return urlsplit(self.endpoint).path.rpartition("/")[2]
