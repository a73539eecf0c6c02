"""With the package that OpenAPI Generator makes of docs/openapi.yaml, for Python."""

import os
import time
from uuid import uuid4

from generated import ApiClient, Configuration, NotificationsApi, SubscriptionsApi
from generated.exceptions import ApiException
from generated.models.problem import Problem
from generated.models.send_input import SendInput
from generated.models.subscribe_input import SubscribeInput

configuration = Configuration(
    host=os.environ["PUSHSVC_URL"],
    api_key={"ApiKey": os.environ["PUSHSVC_KEY"]},
    api_key_prefix={"ApiKey": "Key"},
)
client = ApiClient(configuration)
notifications = NotificationsApi(client)

device = SubscribeInput.from_json(os.environ["PUSHSVC_SUBSCRIPTION"])
assert device is not None
channel = os.environ["PUSHSVC_CHANNEL"]
print("subscribed", SubscriptionsApi(client).subscribe(channel, device).subscription_id)

message = SendInput(title="Hello", body="It works.", url="https://example.com/")
sent = notifications.send_notification(message, idempotency_key=str(uuid4()))
print("sent", sent.notification_id)

while True:
    shown = notifications.get_notification(sent.notification_id)
    if shown.status.value in ("sent", "failed", "cancelled"):
        break
    time.sleep(0.2)
print(f"result {shown.status.value}: {shown.delivered_count} of {shown.recipient_count}")

try:
    notifications.send_notification(SendInput(body="x", segment_id=uuid4()))
except ApiException as error:
    assert isinstance(error.data, Problem)
    print("refused", error.status, error.data.code)
