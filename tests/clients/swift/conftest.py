import json
import os
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest
from django.test import override_settings

from channels_app.services import provider_credentials_store
from pushsvc.common.store.redis_client import redis_client
from sandbox import running_apns_sandbox
from tests.api.support import owner_of
from tests.clients.swift import chroot
from tests.clients.swift.devices import PNG, Program, new_folder, running_gate
from tests.factories import make_channel
from tests.pipeline.processes import running_web

# `make swift` runs them.
collect_ignore = [] if "SWIFT" in os.environ else ["test_device.py", "test_guide.py"]


@pytest.fixture(scope="session")
def built():
    chroot.build()


@pytest.fixture(scope="module")
def apple():
    with running_apns_sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def service(apple, transactional_db, tmp_path_factory):
    log = tmp_path_factory.mktemp("service") / "log"
    with override_settings(APNS_SERVER=apple.server, PROVIDER_CA_FILE=str(apple.ca_file)):
        redis_client().flushdb()
        with running_web(log, "worker-plan", "worker-ios", "beat") as address:
            yield address


@pytest.fixture
def gate(service):
    with running_gate(service) as gate:
        yield gate


@pytest.fixture
def owner(apple, transactional_db):
    """The owner of a channel that sends to the app."""
    owner = owner_of(make_channel(ios_enabled=True))
    key = json.dumps(apple.key().credential)
    provider_credentials_store(channel=owner.channel, apns_key=key)
    return owner


@pytest.fixture
def start(built, gate, owner):
    """Starts a program on a phone, which keeps its data in the folder."""
    started = []

    def start(name="device", folder=None, **environment):
        here, inside = folder or new_folder()
        paths = {"STORE": inside, "KEYCHAIN": inside, "HOME": inside}
        own = {"SERVICE": gate.url, "CHANNEL": str(owner.channel.id)}
        settings = paths | own | {"TOKEN": secrets.token_hex(32)} | environment
        program = Program(name, (here, inside), **settings)
        started.append(program)
        return program

    yield start
    for each in started:
        each.kill()


@pytest.fixture
def images():
    """The address of a server of images. A slow one waits for the end of the test, or 5 s."""
    released = Event()
    files = {
        "/rain.png": (200, "image/png", PNG),
        "/slow.png": (200, "image/png", PNG),
        "/page": (200, "text/html", b"<h1>Hello</h1>"),
        "/gone.png": (404, "image/png", PNG),
        "/large.jpg": (200, "image/jpeg", bytes(10 * 1024 * 1024 + 1)),
        "/empty.gif": (200, "image/gif", b""),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/slow.png":
                released.wait(5)
            status, kind, body = files[self.path]
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        released.set()
        server.shutdown()
        thread.join()
