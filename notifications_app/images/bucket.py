"""A bucket of an S3-compatible service, in which images are stored if IMAGES_BUCKET_URL is set.

Three calls, signed with Signature Version 4
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html). All of
S3's own libraries are many times larger than what this needs.
"""

import hmac
import time
from hashlib import sha256
from typing import Final
from urllib.parse import quote, urlsplit
from uuid import UUID

from django.conf import settings

from notifications_app.images.decoding import MOST_BYTES
from pushsvc.common.errors import Unavailable

_SECONDS: Final = (5.0, 10.0)  # to connect, and for each read
_SIGNED: Final = ("host", "x-amz-content-sha256", "x-amz-date")


class BucketFailed(Unavailable):
    """The service cannot be reached, or refuses the call."""

    detail = "The storage of images does not respond as it should. Try again later."


def bucket_put(key: UUID, content: bytes, content_type: str) -> None:
    """Stores the object. Safe to repeat. Raises BucketFailed."""
    _call("PUT", key, content, content_type)


def bucket_get(key: UUID) -> bytes:
    """Reads the object. Raises BucketFailed, also if it does not exist."""
    return _call("GET", key)


def bucket_delete(key: UUID) -> None:
    """Deletes the object if it exists. Raises BucketFailed."""
    _call("DELETE", key)


def _call(method: str, key: UUID, content: bytes = b"", content_type: str = "") -> bytes:
    # Here, because only processes that call a bucket need it. It calls only what operators named.
    import requests  # noqa: TID251
    from urllib3.exceptions import HTTPError

    url = f"{settings.IMAGES_BUCKET_URL}/{key}"
    headers = _signature(method, url, content, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    if content_type:
        headers["content-type"] = content_type
    with requests.Session() as session:
        session.trust_env = False  # neither proxies nor passwords of this machine's users
        try:
            response = session.request(
                method,
                url,
                data=content,
                headers=headers,
                timeout=_SECONDS,
                allow_redirects=False,
                stream=True,
            )
            body: bytes = response.raw.read(MOST_BYTES + 1)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise BucketFailed from error
    if response.status_code not in {200, 204} or len(body) > MOST_BYTES:
        raise BucketFailed
    return body


def _signature(method: str, url: str, content: bytes, moment: str) -> dict[str, str]:
    """The headers that sign the request at this moment, such as 20261128T093000Z."""
    parts = urlsplit(url)
    values = (parts.netloc, sha256(content).hexdigest(), moment)
    headers = dict(zip(_SIGNED, values, strict=True))
    lines = [f"{name}:{value}" for name, value in headers.items()]
    path = quote(parts.path, safe="/-_.~")
    request = "\n".join([method, path, "", *lines, "", ";".join(_SIGNED), values[1]])
    scope = [moment[:8], settings.IMAGES_BUCKET_REGION, "s3", "aws4_request"]
    summary = sha256(request.encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", moment, "/".join(scope), summary])
    key = f"AWS4{settings.IMAGES_BUCKET_SECRET_KEY}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    named = f"{settings.IMAGES_BUCKET_KEY_ID}/{'/'.join(scope)}"
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={named}, SignedHeaders={';'.join(_SIGNED)},"
        f" Signature={signature}"
    )
    return headers
