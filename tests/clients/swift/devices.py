"""Programs in the chroot that the tests talk to, and a gate between them and the service."""

import base64
import itertools
import json
import queue
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from subscriptions_app.models import Subscription
from tests.api.support import accepted
from tests.clients.swift import chroot

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

_PATIENT_SECONDS = 60
_numbers = itertools.count()


class Program:
    """Prints lines of JSON for those that it reads."""

    def __init__(self, name, folder, **environment):
        self.folder = folder
        self.unread = []
        words = (f"/work/build/programs/debug/{name}",)
        self._process = subprocess.Popen(
            chroot.command(*words, **environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(json.loads(line))

    def tell(self, what):
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def heard(self, *keys):
        """The value of the next line with one of these keys."""
        for line in list(self.unread):
            if set(keys) & set(line):
                self.unread.remove(line)
                return line
        while True:
            line = self._lines.get(timeout=_PATIENT_SECONDS)
            if set(keys) & set(line):
                return line
            self.unread.append(line)

    def __call__(self, do, **more):
        """The result of a call of the program `device`."""
        self.tell({"do": do} | more)
        answer = self.heard("ok", "error")
        return answer["ok"] if "ok" in answer else answer["error"]

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def new_folder():
    """A new folder, here and in the chroot."""
    name = f"run/{time.time_ns()}-{next(_numbers)}"
    (chroot.WORK / name).mkdir(parents=True)
    return chroot.WORK / name, f"/work/{name}"


class Gate:
    """Passes requests on to the service, but first gives the answers that it was told: a status
    with its headers and body, or None for no answer. Keeps what was asked."""

    def __init__(self, url):
        self.url = url
        self.answers = []
        self.requests = []  # (path, body)
        self.is_closed = False

    def asked(self, path):
        return [body for asked, body in self.requests if asked == path]


@contextmanager
def running_gate(service):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if gate.is_closed:
                return self.connection.close()
            gate.requests.append((self.path, json.loads(body)))
            if not gate.answers:
                return self._answer(*self._passed_on(body))
            answer = gate.answers.pop(0)
            return self.connection.close() if answer is None else self._answer(*answer)

        def _passed_on(self, body):
            kept = ("Content-Type", "X-Channel-ID")
            headers = {name: self.headers[name] for name in kept if name in self.headers}
            request = urllib.request.Request(service + self.path, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    return response.status, dict(response.headers), response.read()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, dict(error.headers), error.read()

        def _answer(self, status, headers, body):
            self.send_response(status)
            for name in ("Content-Type", "Retry-After"):
                if name in headers:
                    self.send_header(name, headers[name])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        gate = Gate(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield gate
        finally:
            server.shutdown()
            thread.join()


def eventually(look):
    """What `look` returns when that is true for the first time."""
    end = time.monotonic() + _PATIENT_SECONDS
    while not (found := look()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
    return found


def row_of(owner):
    return Subscription.objects.get(channel=owner.channel)


def tags_of(owner):
    return sorted(row_of(owner).tags.values_list("tag", flat=True))


def delivered(owner, apple, its_token, **content):
    """The payload that the device received of a new notification, and the notification."""
    sent = accepted(owner, {"body": "It rains.", "target_platforms": ["ios"]} | content)
    [message] = eventually(
        lambda: [
            each
            for each in apple.messages(its_token)
            if json.loads(each.payload)["notification_id"] == str(sent.pk)
        ]
    )
    return message.payload.decode(), sent
