"""The sink if nginx is missing: `python -m bench.own_sink FOLDER HOST PORT`.

FOLDER has server.pem, and the file to which a line is appended for each message.
"""

import asyncio
import json
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded
from h2.settings import SettingCodes
from typing_extensions import override

_GRANT = json.dumps({"access_token": "bench", "expires_in": 3599, "token_type": "Bearer"}).encode()
_NAME = json.dumps({"name": "projects/bench/messages/1"}).encode()


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    is_message: bool = True


_Answering = Callable[[str, str], _Answer]  # from a path and an apns-id


def _answer(path: str, apns_id: str) -> _Answer:
    if path.startswith("/push/"):
        return _Answer(201, (("location", "/message/1"),))
    if path.startswith("/3/device/"):
        return _Answer(200, (("apns-id", apns_id),))
    as_json = (("content-type", "application/json"),)
    if path.startswith("/v1/projects/"):
        return _Answer(200, as_json, _NAME)
    return _Answer(200, as_json, _GRANT, is_message=False)


def main() -> None:
    folder, host, port = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    tls.load_cert_chain(folder / "server.pem")
    with (folder / "messages").open("a", buffering=1) as messages:
        asyncio.run(_serve(tls, host, port, messages))


async def _serve(tls: ssl.SSLContext, host: str, port: int, messages: IO[str]) -> None:
    def answer(path: str, apns_id: str) -> _Answer:
        found = _answer(path, apns_id)
        if found.is_message:
            messages.write("m\n")
        return found

    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Sink(answer), host, port, ssl=tls, backlog=4096)
    await server.serve_forever()


class _Sink(asyncio.Protocol):
    """Reads requests to their end and answers each, in the protocol that TLS agreed on."""

    def __init__(self, answer: _Answering) -> None:
        self._answer = answer

    @override
    def connection_made(self, transport: Any) -> None:
        is_http2 = transport.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        kind = _Http2 if is_http2 else _Http1
        self._receive = kind(transport.write, self._answer).receive

    @override
    def data_received(self, data: bytes) -> None:
        self._receive(data)


class _Http1:
    def __init__(self, write: Callable[[bytes], None], answer: _Answering) -> None:
        self._write, self._answer, self._held = write, answer, b""

    def receive(self, data: bytes) -> None:
        self._held += data
        while (end := self._end_of_request()) is not None:
            path = self._held.split(b" ", 2)[1].decode()
            self._held = self._held[end:]
            self._send(self._answer(path, ""))

    def _end_of_request(self) -> int | None:
        head, found, _ = self._held.partition(b"\r\n\r\n")
        lengths = [
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ]
        end = len(head) + 4 + sum(lengths)
        return end if found and len(self._held) >= end else None

    def _send(self, answer: _Answer) -> None:
        fields = (*answer.headers, ("content-length", str(len(answer.body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in fields)
        self._write(f"HTTP/1.1 {answer.status} OK\r\n{head}\r\n".encode() + answer.body)


class _Http2:
    def __init__(self, write: Callable[[bytes], None], answer: _Answering) -> None:
        self._write, self._answer = write, answer
        self._asked: dict[int, tuple[str, str]] = {}
        self._connection = H2Connection(H2Configuration(client_side=False))
        self._connection.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = 1000
        self._connection.initiate_connection()
        write(self._connection.data_to_send())

    def receive(self, data: bytes) -> None:
        for event in self._connection.receive_data(data):
            match event:
                case RequestReceived(stream_id=int(stream), headers=list(headers)):
                    fields = dict(headers)
                    path, apns_id = fields[b":path"], fields.get(b"apns-id", b"")
                    self._asked[stream] = (_text(path), _text(apns_id))
                case DataReceived(stream_id=int(stream), flow_controlled_length=int(length)):
                    self._connection.acknowledge_received_data(length, stream)
                case StreamEnded(stream_id=int(stream)):
                    self._send(stream, self._answer(*self._asked.pop(stream)))
        self._write(self._connection.data_to_send())

    def _send(self, stream: int, answer: _Answer) -> None:
        headers = [(":status", str(answer.status)), *answer.headers]
        self._connection.send_headers(stream, headers, end_stream=not answer.body)
        if answer.body:
            self._connection.send_data(stream, answer.body, end_stream=True)


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    main()
