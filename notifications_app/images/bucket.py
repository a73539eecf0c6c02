"""A bucket of an S3-compatible service, in which images are stored if IMAGES_BUCKET_URL is set.

The calls are those of django-storages and boto3, which requirements/images.txt installs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.files.base import ContentFile

from notifications_app.images.decoding import MOST_BYTES
from pushsvc.common.errors import Unavailable

if TYPE_CHECKING:
    from storages.backends.s3 import S3Storage

_SECONDS: Final = (5.0, 10.0)  # to connect, and for each read


class BucketFailed(Unavailable):
    """The service cannot be reached, or refuses the call."""

    detail = "The storage of images does not respond as it should. Try again later."


def bucket_put(key: UUID, content: bytes, content_type: str) -> None:
    """Stores the object. Safe to repeat. Raises BucketFailed."""
    file = ContentFile(content)
    file.content_type = content_type  # type: ignore[attr-defined] # django-storages reads it
    with _bucket() as storage:
        storage.save(str(key), file)


def bucket_get(key: UUID) -> bytes:
    """Reads the object. Raises BucketFailed, also if it does not exist."""
    with _bucket() as storage:
        # Not `storage.open`, which makes three calls, and reads objects of any size.
        response = storage.bucket.Object(str(key)).get()
        with response["Body"] as body:
            content: bytes = body.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BucketFailed
    return content


def bucket_delete(key: UUID) -> None:
    """Deletes the object if it exists. Raises BucketFailed."""
    with _bucket() as storage:
        storage.delete(str(key))


@contextmanager
def _bucket() -> Iterator["S3Storage"]:
    # Here, because only processes that call a bucket need them.
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError
    from urllib3.exceptions import HTTPError

    try:
        yield _storage(
            settings.IMAGES_BUCKET_URL,
            settings.IMAGES_BUCKET_REGION,
            settings.IMAGES_BUCKET_KEY_ID,
            settings.IMAGES_BUCKET_SECRET_KEY,
            _SECONDS,
        )
    except (Boto3Error, BotoCoreError, ClientError, HTTPError, OSError) as error:
        raise BucketFailed from error


@lru_cache(maxsize=1)
def _storage(
    url: str, region: str, key_id: str, secret: str, seconds: tuple[float, float]
) -> "S3Storage":
    """It may be shared by threads, and keeps a connection for each."""
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config
    from storages.backends.s3 import S3Storage

    service, name, style = _parts(url)
    config = Config(
        s3={"addressing_style": style},
        signature_version="s3v4",
        connect_timeout=seconds[0],
        read_timeout=seconds[1],
        retries={"total_max_attempts": 1},
        proxies={},  # not those of the environment
        # Other services than AWS may not know the headers and the encoding of newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return S3Storage(
        bucket_name=name,
        endpoint_url=service,
        region_name=region,
        access_key=key_id,
        secret_key=secret,
        client_config=config,
        transfer_config=TransferConfig(use_threads=False),
    )


def _parts(url: str) -> tuple[str, str, str]:
    """The service's address, the bucket, and which of the two forms of an address it has."""
    parts = urlsplit(url)
    if parts.path:
        path, _, name = parts.path.rpartition("/")
        return f"{parts.scheme}://{parts.netloc}{path}", name, "path"
    name, _, host = parts.netloc.partition(".")
    return f"{parts.scheme}://{host}", name, "virtual"
