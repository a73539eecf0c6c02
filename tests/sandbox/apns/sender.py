"""A provider as client teams write it, with a socket, h2 and PyJWT, and no code of ours."""

import json
import socket
import ssl
import time
from dataclasses import dataclass, field
from uuid import uuid4

import jwt
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    PingReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.settings import SettingCodes

BODY = b'{"aps":{"alert":"Hello"}}'


def token_of(key, *, iat=None, headers=None, algorithm="ES256", private_key=None, **claims):
    issued_at = int(time.time()) if iat is None else iat
    return jwt.encode(
        {"iss": key.team_id, "iat": issued_at} | claims,
        private_key or key.private_key,
        algorithm=algorithm,
        headers={"kid": key.key_id} | (headers or {}),
    )


def headers_of(device, token, **over):
    """`over` replaces a field, spelled with underscores; None leaves it out."""
    fields = {
        ":method": "POST",
        ":scheme": "https",
        ":authority": "localhost",
        ":path": f"/3/device/{device.token}",
        "authorization": f"bearer {token}",
        "apns-topic": device.topic,
        "apns-push-type": "alert",
        "apns-priority": "10",
        "apns-expiration": "0",
        "apns-id": str(uuid4()),
    }
    changes = {name.replace("_", "-"): value for name, value in over.items()}
    path = changes.pop("path", None)
    method = changes.pop("method", None)
    fields |= {":path": path or fields[":path"], ":method": method or "POST"} | changes
    return [(name, value) for name, value in fields.items() if value is not None]


@dataclass
class Answered:
    status: int = 0
    headers: dict = field(default_factory=dict)
    body: bytes = b""
    ended: bool = False
    reset: int | None = None
    frames: list = field(default_factory=list)

    @property
    def reason(self):
        return json.loads(self.body)["reason"]


class Provider:
    """One connection. `post` sends; `read` reads until the stream has ended in any way."""

    def __init__(self, sandbox):
        host, port = sandbox.server.rsplit(":", 1)
        tls = ssl.create_default_context(cadata=sandbox.ca_pem)
        tls.set_alpn_protocols(["h2"])
        plain = socket.create_connection((host, int(port)), timeout=60)
        self.socket = tls.wrap_socket(plain, server_hostname=host)
        self.h2 = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.answers = {}
        self.streams = []
        self.goaways = []
        self.pings = 0
        self._flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def post(self, headers, body=BODY):
        stream_id = self.h2.get_next_available_stream_id()
        self.answers[stream_id] = Answered()
        self.h2.send_headers(stream_id, headers)
        for start in range(0, len(body), 16_384):
            self.h2.send_data(stream_id, body[start : start + 16_384])
        self.h2.end_stream(stream_id)
        self._flush()
        return stream_id

    def reset(self, stream_id):
        self.h2.reset_stream(stream_id, ErrorCodes.CANCEL)
        self._flush()

    def say_goodbye(self):
        self.h2.close_connection()
        self._flush()

    def read(self, stream_id):
        answer = self.answers[stream_id]
        while not answer.ended and answer.reset is None:
            self.read_some()
        return answer

    def send(self, headers, body=BODY):
        return self.read(self.post(headers, body))

    def read_some(self):
        """Raises ConnectionError at the end of the connection."""
        data = self.socket.recv(65_536)
        if not data:
            raise ConnectionAbortedError("closed")
        for event in self.h2.receive_data(data):
            self._take(event)
        self._flush()

    def read_to_the_end(self):
        while True:
            self.read_some()

    def _take(self, event):
        answer = self.answers.get(getattr(event, "stream_id", None))
        match event:
            case RemoteSettingsChanged():
                limit = event.changed_settings.get(SettingCodes.MAX_CONCURRENT_STREAMS)
                self.streams += [limit.new_value] if limit else []
            case ConnectionTerminated():
                self.goaways.append(event.last_stream_id)
            case PingReceived():
                self.pings += 1
            case ResponseReceived():
                answer.headers = dict(event.headers)
                answer.status = int(answer.headers[":status"])
            case DataReceived():
                answer.body += event.data
                answer.frames.append(len(event.data))
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case StreamEnded():
                answer.ended = True
            case StreamReset():
                answer.reset = event.error_code

    def without_tls(self):
        """The TCP connection, from now on: ssl makes a reset look like an end."""
        plain = socket.socket(fileno=self.socket.detach())
        plain.settimeout(5)
        return plain

    def _flush(self):
        try:
            self.socket.sendall(self.h2.data_to_send())
        except ssl.SSLEOFError as error:
            raise ConnectionAbortedError("closed") from error
