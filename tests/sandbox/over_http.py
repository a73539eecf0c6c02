"""What the web push and FCM sandboxes have in common, over their HTTP interfaces."""

import json
from email.utils import parsedate_to_datetime

from tests.sandbox.webpush.sender import request


def call(sandbox, method, path, body=None):
    """(status, answer) of a request to the control interface."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    answered = request(method, sandbox.origin + path, raw)
    return answered.status, json.loads(answered.body or b"null")


def check_wait(sender, device, mode):
    """The mode's `Retry-After` is in seconds, a date or absent, as it was set."""
    device.behave(mode, retry_after=7)
    assert sender.send(device).headers["Retry-After"] == "7"
    device.behave(mode, retry_after=7, as_date=True)
    headers = sender.send(device).headers
    wait = parsedate_to_datetime(headers["Retry-After"]) - parsedate_to_datetime(headers["Date"])
    assert 6 <= wait.total_seconds() <= 8
    device.behave(mode)
    assert sender.send(device).headers["Retry-After"] is None
