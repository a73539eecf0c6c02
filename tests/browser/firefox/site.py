"""A web site on an origin of its own, made by following docs/browser.md to the letter."""

import json
import re
import shlex
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_GUIDE = Path(__file__).resolve().parents[3] / "docs" / "browser.md"
_SERVICE = "https://push.example.com"
_CHANNEL = "00000000-0000-0000-0000-000000000000"
_ELSEWHERE = "https://www.example.com"

_PAGE = "<!doctype html><meta charset=utf-8><title>Alice's shop</title><h1>Alice's shop</h1>"


class Site:
    """A page with the guide's lines at `url`, and any other page below it.

    Of the guide's lines only the service's address and the channel's id are changed. `files`: path
    → (media type, text).
    """

    def __init__(self, url, service_url, channel_id):
        self.url = url
        self._names = {_SERVICE: service_url, _CHANNEL: channel_id, _ELSEWHERE: url.rstrip("/")}
        worker, page, self._curl = (self._block(kind) for kind in ("js", "html", "sh"))
        self.files = {
            "/": ("text/html", _PAGE + page),
            "/push-sw.js": ("text/javascript", worker),
        }

    def read(self, path):
        """(media type, text) of a file of the site."""
        return self.files.get(path, ("text/html", f"{_PAGE}<p>{path}"))

    def curl(self, api_key):
        """Address, headers and body of the request that the guide shows."""
        words = shlex.split(self._curl.replace("$API_KEY", api_key).replace("\\\n", " "))
        options = list(zip(words[2::2], words[3::2], strict=True))
        headers = dict(value.split(": ", 1) for option, value in options if option == "-H")
        (body,) = [json.loads(value) for option, value in options if option == "-d"]
        assert words[0] == "curl"
        return words[1], headers, body

    def _block(self, kind):
        """The guide's first code block of this language."""
        text = re.search(rf"^```{kind}\n(.*?)^```$", _GUIDE.read_text(), re.M | re.S).group(1)
        for name, given in self._names.items():
            text = text.replace(name, given)
        return text


@contextmanager
def serving(service_url, channel_id):
    """The site of a channel, on `localhost`, which is a secure context."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.site = Site(f"http://localhost:{server.server_port}/", service_url, channel_id)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    site: Site


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    # One request for each connection: none that Firefox keeps open delays the end.
    protocol_version = "HTTP/1.0"

    def do_GET(self):
        media_type, text = self.server.site.read(self.path)
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        """Keeps requests out of the tests' output."""
