"""Receivers of webhooks: an HTTP server that keeps what it got and answers as a test wants."""

import json
import ssl
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook as Verifier


@dataclass
class Request:
    headers: dict
    body: bytes

    @property
    def message_id(self):
        return self.headers["webhook-id"]

    @property
    def said(self):
        return json.loads(self.body)

    def verified(self, secret):
        """What the request says, by the library of Standard Webhooks. It raises if it is forged."""
        return Verifier(secret).verify(self.body, self.headers)


@dataclass
class Receiver:
    """`answer(request)`: returns the status, or (status, headers, body). It may wait. A body of
    which the length is not known is an iterable of bytes."""

    origin: str
    requests: list = field(default_factory=list)
    answer: Callable[[Request], Any] = field(default=lambda _request: 204)
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request):
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            answered = self.answer(request)
        finally:
            with self._lock:
                self._at_once -= 1
        return answered if isinstance(answered, tuple) else (answered, {}, b"")

    @property
    def types(self):
        return [each.said["type"] for each in self.requests]

    def facts(self, kind):
        """The facts of this kind, of each message once."""
        said = {each.message_id: each.said for each in self.requests}
        lists = [
            value
            for each in said.values()
            if each["type"] == kind
            for value in each["data"].values()
            if isinstance(value, list)
        ]
        return [fact for facts in lists for fact in facts]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def running_receiver(port=0, *, certificate=None):
    """`certificate`: a PEM file with certificate and key, to serve over TLS."""
    receiver = Receiver("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more, answer = receiver.take(Request(headers, body))
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            if isinstance(answer, bytes):
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                return
            self.send_header("Connection", "close")
            self.end_headers()
            with suppress(OSError):  # the client has closed the connection
                for part in answer:
                    self.wfile.write(part)

        def log_message(self, *_):
            pass

    with _Server(("127.0.0.1", port), Handler) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https" if certificate else "http"
        receiver.origin = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
