"""Newsfeeds of tests: documents, a server that serves them, and a worker that checks them."""

import ssl
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import escape

from django.db.models.functions import Now
from django.utils import timezone

from notifications_app.models import Newsfeed
from notifications_app.sends import firing
from notifications_app.webhooks import turns

SEND = {"title": "{{ entry.title }}", "body": "{{ entry.summary }}"}


@dataclass
class Site:
    """A site with a feed. `answer(path, headers)` returns (status, headers, body); a body of which
    the length is not known is an iterable of bytes."""

    origin: str
    requests: list = field(default_factory=list)
    answer: Callable[[str, dict], Any] = field(default=lambda _path, _headers: (404, {}, b""))

    @property
    def url(self):
        return f"{self.origin}/feed"

    def serve(self, document, **headers):
        body = document.encode() if isinstance(document, str) else document
        self.answer = lambda _path, _headers: (200, headers, body)


@contextmanager
def running_site(*, certificate=None, port=0):
    site = Site("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            headers = {name.lower(): value for name, value in self.headers.items()}
            site.requests.append((self.path, headers))
            status, more, body = site.answer(self.path, headers)
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name.replace("_", "-"), value)
            if isinstance(body, bytes):
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            self.send_header("Connection", "close")
            self.end_headers()
            with suppress(OSError):  # the client has closed the connection
                for part in body:
                    self.wfile.write(part)
            self.close_connection = True

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            pass

    with Server(("127.0.0.1", port), Handler) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https" if certificate else "http"
        site.origin = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


def item(number, *, ago=timedelta(), **fields):
    """An item of RSS. None leaves a field out."""
    values = {
        "title": f"Title {number}",
        "link": f"https://news.example/{number}",
        "guid": f"guid-{number}",
        "description": f"Summary {number}",
        "pubDate": format_datetime(timezone.now() - ago - timedelta(seconds=number)),
        **fields,
    }
    texts = [f"<{k}>{escape(v)}</{k}>" for k, v in values.items() if v is not None]
    return f"<item>{''.join(texts)}</item>"


def rss(*items, channel=""):
    inner = f"<channel>{channel}{''.join(items)}</channel>"
    return f'<?xml version="1.0"?><rss version="2.0">{inner}</rss>'


def path(owner, *parts):
    return "/".join([f"/channel/{owner.channel.id}/newsfeeds", *map(str, parts)])


def created(owner, url, send=SEND, **fields):
    body = {"name": "News", "url": url, "notification": send, **fields}
    response = owner.call("POST", path(owner), body)
    assert response.status_code == 201, response.content
    return Newsfeed.objects.get(pk=response.json()["newsfeed_id"])


def check():
    """Makes all newsfeeds due, checks them and sends what they found, as the workers do."""
    Newsfeed.objects.update(next_at=Now())
    assert turns.work(seconds=20) is False
    assert firing.work(seconds=20) is False


def primed(owner, site, *items, send=SEND, **fields):
    """A newsfeed whose first check has read these items."""
    site.serve(rss(*items))
    newsfeed = created(owner, site.url, send, **fields)
    check()
    newsfeed.refresh_from_db()
    assert newsfeed.known is not None, newsfeed.last_error
    return newsfeed
