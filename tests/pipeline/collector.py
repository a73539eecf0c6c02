"""A collector of spans and a Sentry, in the test's process."""

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import brotli
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typing_extensions import override

UNPACK = {"": bytes, "gzip": gzip.decompress, "br": brotli.decompress}


class Collector:
    """`bodies`: all that it received."""

    def __init__(self, port):
        self.environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",  # ms until spans are sent
            "SENTRY_DSN": f"http://key@127.0.0.1:{port}/1",
        }
        self.bodies = []
        self.spans = []
        self.errors = []

    def take(self, path, body):
        self.bodies.append(body)
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.spans += scope.spans
        else:
            # A header, then for each item its header and its payload, in lines.
            _, *items = [json.loads(line) for line in body.splitlines() if line]
            kinds, payloads = items[::2], items[1::2]
            pairs = zip(kinds, payloads, strict=True)
            self.errors += [each for kind, each in pairs if kind["type"] == "event"]


@contextmanager
def running_collector():
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            unpack = UNPACK[self.headers.get("Content-Encoding", "")]
            collector.take(self.path, unpack(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        @override
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
