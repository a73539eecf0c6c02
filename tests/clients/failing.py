"""A server that answers as it is told, for the retries of clients."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHANNEL = "00000000-0000-0000-0000-000000000000"
BUSY = (503, {"code": "busy"}, {"Retry-After": "0"})
SENT = (202, {"notification_id": "one"}, {})


@contextmanager
def answering(*answers):
    """The address of a server that gives these answers, None being none; and the headers of the
    requests that it got."""
    left, requests = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.append(self.headers)
            answer = left.pop(0)
            if answer is None:
                self.connection.close()
                return
            status, body, headers = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if body is not None:
                self.wfile.write(json.dumps(body).encode())

        do_GET = do_POST  # noqa: N815 (the base class's spelling)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()
