"""Webhooks that the library of Standard Webhooks signs."""

import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from time import time

from standardwebhooks.webhooks import Webhook as Signer

SECRET = "whsec_" + b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + b64encode(bytes(32)).decode()
SAID = {
    "type": "notification.finished",
    "timestamp": "2026-05-04T12:00:00Z",
    "data": {"notification_id": "one", "title": "Grüße"},
}
BODY = json.dumps(SAID, ensure_ascii=False).encode()


def signed(*secrets, body=BODY, age=timedelta(0)):
    """The headers of a request, with a signature of each secret."""
    at = datetime.fromtimestamp(time(), tz=UTC) - age
    signatures = [Signer(secret).sign("msg_1", at, body.decode()) for secret in secrets]
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
