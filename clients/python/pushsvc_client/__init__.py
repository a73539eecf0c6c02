"""A client of pushsvc: `Client`, and `AsyncClient` with the same methods.

`pushsvc_client.schemas` has the types of what is sent and answered.
"""

from pushsvc_client import schemas
from pushsvc_client.client import AsyncClient, Client
from pushsvc_client.errors import FieldError, InvalidWebhook, PushsvcError, Refused, Unreachable
from pushsvc_client.version import VERSION
from pushsvc_client.webhooks import Webhook, verify_webhook

__version__ = VERSION
__all__ = [
    "AsyncClient",
    "Client",
    "FieldError",
    "InvalidWebhook",
    "PushsvcError",
    "Refused",
    "Unreachable",
    "Webhook",
    "__version__",
    "schemas",
    "verify_webhook",
]
