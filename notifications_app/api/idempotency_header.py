"""The header Idempotency-Key of requests that create something."""

from typing import Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from notifications_app.errors import IDEMPOTENCY_HEADER
from notifications_app.sends.idempotency import checked_key

IDEMPOTENCY_PARAMETER: Final = OpenApiParameter(
    IDEMPOTENCY_HEADER,
    {"type": "string", "minLength": 1, "maxLength": 255},
    OpenApiParameter.HEADER,
    description="For safe retries: within 24 hours, the same key and body return the first answer"
    " again.",
)


def idempotency_key(request: Request) -> str | None:
    """The checked key of the request, or None. Raises IdempotencyKeyInvalid."""
    key = request.headers.get(IDEMPOTENCY_HEADER)
    return None if key is None else checked_key(key)
