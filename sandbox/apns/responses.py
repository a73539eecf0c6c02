"""The responses of the APNs sandbox: Apple's reasons with their statuses, and one other reason.

Apple, "Handling notification responses from APNs", tables of status codes and error strings.
"""

import json
from collections.abc import Mapping
from typing import Final

from sandbox.responses import RejectedError, Response

STATUSES: Final[Mapping[str, int]] = {
    "BadCollapseId": 400,
    "BadDeviceToken": 400,
    "BadExpirationDate": 400,
    "BadMessageId": 400,
    "BadPriority": 400,
    "DeviceTokenNotForTopic": 400,
    "DuplicateHeaders": 400,
    "InvalidPayload": 400,  # ours: Apple accepts such a payload, and the phone ignores the errors
    "InvalidPushType": 400,
    "MissingDeviceToken": 400,
    "MissingTopic": 400,
    "PayloadEmpty": 400,
    "TopicDisallowed": 400,
    "BadEnvironmentKeyIdInToken": 403,
    "ExpiredProviderToken": 403,
    "InvalidProviderToken": 403,
    "MissingProviderToken": 403,
    "UnrelatedKeyIdInToken": 403,
    "BadPath": 404,
    "MethodNotAllowed": 405,
    "ExpiredToken": 410,
    "Unregistered": 410,
    "PayloadTooLarge": 413,
    "TooManyProviderTokenUpdates": 429,
    "TooManyRequests": 429,
    "InternalServerError": 500,
    "ServiceUnavailable": 503,
    "Shutdown": 503,
}


def rejected(reason: str) -> RejectedError:
    return RejectedError(error_response(reason))


def error_response(
    reason: str,
    timestamp: int | None = None,
    headers: Mapping[str, str] | None = None,
    now: float = 0.0,
) -> Response:
    """The response for a reason. A 410 has a timestamp in milliseconds: the given one, or `now`
    (Unix seconds)."""
    said: dict[str, str | int] = {"reason": reason}
    if STATUSES[reason] == 410:
        said["timestamp"] = int(now * 1_000) if timestamp is None else timestamp
    body = json.dumps(said, separators=(",", ":"))
    return Response(STATUSES[reason], body, {"content-type": "application/json", **(headers or {})})
