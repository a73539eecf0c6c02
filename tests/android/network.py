"""The network between the phone and the service, which tests take down or fill with errors."""

import http.client
import json
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from struct import pack
from urllib.parse import urlsplit

_HEADERS = ("Content-Type", "X-Channel-ID")


class Network:
    """`requests` has the path and the body of each request that arrived. `answers` are given before
    the service is asked: `(status, headers, body)`, or an event for which the request waits."""

    def __init__(self, service):
        self._service = urlsplit(service).netloc
        self._server = None
        self._port = 0
        self.requests = []
        self.answers = []
        self.up()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    def up(self):
        network = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                network.handle(self)

            def do_GET(self):
                network.picture(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_port
        serve = {"poll_interval": 0.02}
        threading.Thread(target=self._server.serve_forever, kwargs=serve, daemon=True).start()

    def down(self):
        """Connections are refused, as to a phone without a network."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def refuse(self, status, code="", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.append((status, named, json.dumps({"code": code}).encode()))

    def handle(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        self.requests.append((request.path, json.loads(body)))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, threading.Event):
            answer.wait(60)
            answer = None
        _respond(request, *(answer or self._forwarded(request, body)))

    def _forwarded(self, request, body):
        headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
        connection = http.client.HTTPConnection(self._service, timeout=60)
        try:
            connection.request("POST", request.path, body, headers)
            response = connection.getresponse()
            content = response.read()
            return (
                response.status,
                {"Content-Type": response.headers.get("Content-Type", "")},
                content,
            )
        finally:
            connection.close()

    def picture(self, request):
        """`/40.png` is a picture with a side of 40 pixels."""
        side = int(request.path.strip("/").removesuffix(".png"))
        _respond(request, 200, {"Content-Type": "image/png"}, png(side))


def _respond(request, status, headers, body):
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def png(side):
    def chunk(name, content):
        checked = name + content
        return pack(">I", len(content)) + checked + pack(">I", zlib.crc32(checked))

    rows = zlib.compress((b"\0" + b"\x80" * side) * side)
    head = pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
