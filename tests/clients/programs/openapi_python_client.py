"""With the package that openapi-python-client makes of docs/openapi.yaml."""

import json
import os
import time
from uuid import uuid4

from generated import AuthenticatedClient, Client
from generated.api.notifications import get_notification, send_notification
from generated.api.subscriptions import subscribe
from generated.models import (
    NotificationOutput,
    Problem,
    SendInput,
    SendOutput,
    SubscribeInput,
    SubscriptionOutput,
)

URL = os.environ["PUSHSVC_URL"]
owner = AuthenticatedClient(base_url=URL, token=os.environ["PUSHSVC_KEY"], prefix="Key")

device = SubscribeInput.from_dict(json.loads(os.environ["PUSHSVC_SUBSCRIPTION"]))
channel = os.environ["PUSHSVC_CHANNEL"]
subscribed = subscribe.sync(client=Client(base_url=URL), body=device, x_channel_id=channel)
assert isinstance(subscribed, SubscriptionOutput)
print("subscribed", subscribed.subscription_id)

message = SendInput(title="Hello", body="It works.", url="https://example.com/")
sent = send_notification.sync(client=owner, body=message, idempotency_key=str(uuid4()))
assert isinstance(sent, SendOutput)
print("sent", sent.notification_id)

while True:
    shown = get_notification.sync(sent.notification_id, client=owner)
    assert isinstance(shown, NotificationOutput)
    if shown.status in ("sent", "failed", "cancelled"):
        break
    time.sleep(0.2)
print(f"result {shown.status}: {shown.delivered_count} of {shown.recipient_count}")

refused = send_notification.sync(client=owner, body=SendInput(body="x", segment_id=uuid4()))
assert isinstance(refused, Problem)
print("refused", refused.status, refused.code)
