"""Receives webhooks of a channel, and prints them. Needs only Python:

. var/demo.env && python3 examples/webhook.py

It creates a webhook for this machine, which `make run` allows, and deletes it at the end.
"""

import base64
import hmac
import json
import os
import signal
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

HERE = "http://127.0.0.1:9100"
WEBHOOKS = f"{os.environ['PUSHSVC_URL']}/channel/{os.environ['PUSHSVC_CHANNEL']}/webhooks"
EVENTS = ["notifications.finished", "subscriptions.created", "subscriptions.expired"]


def call(method, url, body=None):
    headers = {
        "Authorization": f"Key {os.environ['PUSHSVC_KEY']}",
        "Content-Type": "application/json",
    }
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request) as response:
        return json.loads(response.read() or "null")


def is_signed(headers, body, secret):
    """Standard Webhooks 1.0.0; libraries do the same."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    message_id, at, given = (headers.get(name, "") for name in names)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signature = hmac.digest(key, f"{message_id}.{at}.".encode() + body, "sha256")
    expected = b"v1," + base64.b64encode(signature)
    is_new = at.isdecimal() and len(at) < 13 and abs(time.time() - int(at)) < 300
    return is_new and any(hmac.compare_digest(expected, each.encode()) for each in given.split(" "))


class Receiver(BaseHTTPRequestHandler):
    secret = ""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        good = is_signed(self.headers, body, self.secret)
        self.send_response(204 if good else 400)
        self.end_headers()
        if good:
            print(json.dumps(json.loads(body), indent=2), flush=True)

    def log_message(self, *_):
        pass


def stop(*_):
    raise KeyboardInterrupt


signal.signal(signal.SIGTERM, stop)
with HTTPServer(("127.0.0.1", 9100), Receiver) as server:
    webhook = call("POST", WEBHOOKS, {"url": f"{HERE}/", "events": EVENTS})
    Receiver.secret = webhook["secret"]
    print("waiting for messages at", HERE, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        call("DELETE", f"{WEBHOOKS}/{webhook['webhook_id']}")
