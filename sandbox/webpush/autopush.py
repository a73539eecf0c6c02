"""Mozilla's push protocol, with which Firefox connects to its push service: `GET /ws`.

autopush-rs: docs/src/architecture.md, autoconnect/autoconnect-common/src/protocol.rs. Firefox
connects here if its preference `dom.push.serverURL` names it (docs/webpush.md).

| from the browser | response |
|---|---|
| `hello` with the `uaid` that it has, if any | `hello` with its `uaid`; a new one if not known |
| `register` with `channelID` and maybe `key` | `register` with `pushEndpoint` |
| `unregister` with `channelID` | `unregister`; the endpoint responds with 410 from then on |
| `ack`, `nack` of a `notification` | none |
| `{}`, `ping` | the same |
| `broadcast_subscribe` | none: there are no broadcasts |

A message that breaks these rules closes the connection.
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from sandbox.serving import STOP_SECONDS
from sandbox.webpush.browsers import Browser, Browsers
from sandbox.webpush.registry import Devices

_MAX_MESSAGE = 65_536
_OK = 200
_BAD_KEY = 400
_CONFLICT = 409


class _ProtocolError(Exception):
    """The browser broke the protocol."""


class AutopushResource:
    def __init__(self, devices: Devices, browsers: Browsers) -> None:
        self._devices = devices
        self._browsers = browsers
        self._open: set[_Connection] = set()

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ws", self.get)]

    async def get(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(
            protocols=("push-notification",), timeout=STOP_SECONDS, max_msg_size=_MAX_MESSAGE
        )
        await socket.prepare(request)
        connection = _Connection(socket)
        self._open.add(connection)
        writing = asyncio.create_task(connection.write())
        try:
            await self._converse(socket, connection)
        finally:
            self._open.discard(connection)
            writing.cancel()
        return socket

    async def close(self, _application: web.Application) -> None:
        """Closes every connection."""
        await asyncio.gather(*(connection.end() for connection in list(self._open)))

    async def _converse(self, socket: web.WebSocketResponse, connection: "_Connection") -> None:
        conversation = _Conversation(self._devices, self._browsers, connection)
        try:
            async for frame in socket:
                conversation.hear(_object(frame))
        except _ProtocolError as error:
            await socket.close(code=WSCloseCode.PROTOCOL_ERROR, message=str(error).encode())
        finally:
            conversation.end()


class _Connection:
    """A `browsers.Link`. Any thread may send; messages are sent in order."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._loop = asyncio.get_running_loop()
        self._outbox: asyncio.Queue[str | None] = asyncio.Queue()

    def send(self, message: Mapping[str, object]) -> None:
        self._put(json.dumps(message))

    def close(self) -> None:
        self._put(None)

    async def write(self) -> None:
        """Sends until the connection ends. Unsent messages wait for the next connection."""
        with contextlib.suppress(ConnectionError):
            while (text := await self._outbox.get()) is not None:
                await self._socket.send_str(text)
            await self.end()

    async def end(self) -> None:
        await self._socket.close(code=WSCloseCode.GOING_AWAY)

    def _put(self, text: str | None) -> None:
        self._loop.call_soon_threadsafe(self._outbox.put_nowait, text)


class _Conversation:
    def __init__(self, devices: Devices, browsers: Browsers, connection: _Connection) -> None:
        self._devices = devices
        self._browsers = browsers
        self._connection = connection
        self._greeted: Browser | None = None

    def hear(self, message: Mapping[str, Any]) -> None:
        """Handles one message. Raises _ProtocolError for an unknown one."""
        match message.get("messageType"):
            case None | "ping":
                self._connection.send(message)
            case "hello" if self._greeted is None:
                self._hello(message.get("uaid"))
            case "register":
                self._register(_text(message, "channelID"), message.get("key"))
            case "unregister":
                self._unregister(_text(message, "channelID"))
            case "ack":
                self._acknowledge(message.get("updates"))
            case "nack":
                self._acknowledge([message])
            case "broadcast_subscribe":
                pass
            case other:
                raise _ProtocolError(f"unexpected message: {other}")

    def end(self) -> None:
        if self._greeted:
            self._browsers.disconnected(self._greeted, self._connection)

    def _hello(self, uaid: object) -> None:
        browser = self._browsers.known_or_new(uaid)
        self._greeted = browser
        reply = {"uaid": browser.uaid, "use_webpush": True, "broadcasts": {}}
        self._reply("hello", _OK, **reply)
        browser.connect(self._connection)

    def _register(self, channel_id: str, key: object) -> None:
        """Registers a subscription. Safe to repeat. Another key for the same id is a conflict."""
        if key is not None and not isinstance(key, str):
            raise _ProtocolError("key is not a text")
        browser = self._browser
        device = browser.devices.get(channel_id)
        try:
            if device is None:
                device = self._devices.add_for(browser, channel_id, key)
        except ValueError:
            self._reply("register", _BAD_KEY, channelID=channel_id)
            return
        status = _OK if device.is_for(key) else _CONFLICT
        self._reply("register", status, channelID=channel_id, pushEndpoint=device.endpoint)

    def _unregister(self, channel_id: str) -> None:
        device = self._browser.unregister(channel_id)
        if device is not None:
            self._devices.delete(device)
        self._reply("unregister", _OK, channelID=channel_id)

    def _acknowledge(self, updates: object) -> None:
        if not isinstance(updates, list):
            raise _ProtocolError("updates is not a list")
        for update in updates:
            if not isinstance(update, dict) or not isinstance(update.get("code"), int):
                raise _ProtocolError("an update without a code")
            self._browser.acknowledge(_text(update, "version"), update["code"])

    @property
    def _browser(self) -> Browser:
        if self._greeted is None:
            raise _ProtocolError("no hello yet")
        return self._greeted

    def _reply(self, message_type: str, status: int, **fields: object) -> None:
        self._connection.send({"messageType": message_type, "status": status} | fields)


def _object(frame: WSMessage) -> dict[str, Any]:
    if frame.type is not WSMsgType.TEXT:
        raise _ProtocolError("not a text")
    try:
        value = json.loads(frame.data)
    except (ValueError, RecursionError):
        raise _ProtocolError("not JSON") from None
    if not isinstance(value, dict):
        raise _ProtocolError("not an object")
    return value


def _text(message: Mapping[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise _ProtocolError(f"{name} is not a text")
    return value
