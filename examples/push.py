"""Subscribes a browser, sends to it, waits for the result, and shows how an error looks."""

import json
import os
import time
import urllib.error
import urllib.request
import uuid

SERVICE = os.environ["PUSHSVC_URL"]
CHANNEL = os.environ["PUSHSVC_CHANNEL"]
KEY = os.environ["PUSHSVC_KEY"]
SUBSCRIPTION = json.loads(os.environ["PUSHSVC_SUBSCRIPTION"])  # a browser's PushSubscription


def call(method, path, body=None, **headers):
    """The status and the JSON of the answer, whatever the status is."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else json.dumps(body).encode()
    headers["Content-Type"] = "application/json"
    request = urllib.request.Request(SERVICE + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


# Public: browsers and apps make this call.
_, subscribed = call("POST", "/subscribe", SUBSCRIPTION, X_Channel_ID=CHANNEL)
print("subscribed", subscribed["subscriptionId"])

# A repeat with the same Idempotency-Key sends nothing a second time.
key = {"Authorization": f"Key {KEY}"}
message = {"title": "Hello", "body": "It works.", "url": "https://example.com/"}
once = {"Idempotency_Key": str(uuid.uuid4())}
_, sent = call("POST", "/send-notification", message, **key, **once)
print("sent", sent["notification_id"])

while True:
    _, shown = call("GET", f"/notification/{sent['notification_id']}", **key)
    if shown["status"] in ("sent", "failed", "cancelled"):
        break
    time.sleep(0.5)
print(f"result {shown['status']}: {shown['delivered_count']} of {shown['recipient_count']}")

# Every error has a stable code (/docs/errors).
status, problem = call("POST", "/send-notification", {"title": "No body"}, **key)
print("refused", status, problem["code"], problem["errors"][0]["attr"])
