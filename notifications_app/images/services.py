"""Adds, keeps, reads and removes images."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet, Sum
from django.db.models.functions import Greatest, Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from notifications_app.images.bucket import BucketFailed, bucket_delete, bucket_get, bucket_put
from notifications_app.images.decoding import ImageRefused, Use, encoded
from notifications_app.models import IMAGE_NAME_LENGTH, Image, ImageRemoval
from pushsvc.common.errors import NotFound
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql

MOST_IMAGES: Final = 200  # of a channel
MOST_TOTAL_BYTES: Final = 64_000_000  # of a channel
KEPT_DAYS: Final = 90  # after the last notification that names it
_ASKED_AGAIN_DAYS: Final = 1  # about an image that something still names
_UPLOAD_SECONDS: Final = 600  # then the object of an upload that never ended is deleted
_REMOVALS: Final = 20
_IN_ADDRESS: Final = re.compile(rf"/images/([0-9a-f]{{{IMAGE_NAME_LENGTH}}})\.(?:png|jpg)")
_PATH: Final = re.compile(rf"([0-9a-f]{{{IMAGE_NAME_LENGTH}}})\.(png|jpg)")

logger = structlog.stdlib.get_logger(__name__)


def image_add(*, channel: Channel, data: bytes, use: Use, user: User) -> Image:
    """Stores the image for this use, and returns it. If the channel has the same image, returns
    that. Safe to repeat. Raises ImageRefused, also if the channel has no room, and BucketFailed."""
    found = encoded(data, use)
    name = sha256(channel.pk.bytes + found.content).hexdigest()[:IMAGE_NAME_LENGTH]
    image = Image(
        id=uuid7(),
        channel=channel,
        name=name,
        kind=found.kind,
        width=found.width,
        height=found.height,
        size=len(found.content),
        content=found.content,
        added_by=user,
    )
    known = _again(image)
    if known is not None:
        return known
    _require_room(image)
    if settings.IMAGES_BUCKET_URL:
        _upload(image, found.content)
    with transaction.atomic():
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        known = _again(image)
        if known is not None:
            return known  # the object is deleted by its removal
        _require_room(image)
        image.save(force_insert=True)
        ImageRemoval.objects.filter(pk=image.pk).delete()
        audit.record(image, audit.Action.CREATE, after=audit.fields_of(image))
    return image


def image_remove(image: Image) -> None:
    """Removes the image. Devices that load it later show none."""
    with transaction.atomic():
        audit.record(image, audit.Action.DELETE, audit.fields_of(image))
        sql.execute(_REMOVE, {"ids": [image.pk]})


def images_of(channel_id: UUID) -> QuerySet[Image]:
    """The channel's images without their content, the newest first."""
    own = Image.objects.filter(channel_id=channel_id)
    return own.defer("content").select_related("added_by").order_by("-id")


def image_at(path: str) -> Image | None:
    """The image with its content, by the last part of its address."""
    parts = _PATH.fullmatch(path)
    return Image.objects.filter(name=parts[1], kind=parts[2]).first() if parts else None


def content_of(image: Image) -> bytes:
    """Raises BucketFailed, also if the bucket returns another number of bytes, because what devices
    get is kept for long."""
    if image.content is not None:
        return bytes(image.content)
    content = bucket_get(image.pk)
    if len(content) != image.size:
        raise BucketFailed
    return content


def own_image_named(channel_id: UUID, address: str) -> Image | None:
    """The channel's image that the address names."""
    parts = _IN_ADDRESS.search(address)
    own = Image.objects.filter(channel_id=channel_id).defer("content")
    return own.filter(name=parts[1]).first() if parts else None


def images_keep(channel_id: UUID, values: Mapping[str, Any], until: datetime | None) -> None:
    """Keeps the images that the columns of a notification name until its time, or if that is None,
    from now on, and KEPT_DAYS longer."""
    extras = values["extras"]
    text = f"{values['icon']} {values['image']} {extras or ''}"
    if names := set(_IN_ADDRESS.findall(text)):
        values = {"channel": channel_id, "names": sorted(names), "until": until}
        sql.execute(_KEEP, values)


def images_purge(limit: int) -> int:
    """Deletes images that no notification has named for KEPT_DAYS, and no template, draft,
    schedule, automation or newsfeed names. Returns how many."""
    with transaction.atomic():
        old = [row[0] for row in sql.rows(_OLD, {"days": KEPT_DAYS, "limit": limit})]
        again = KEPT_DAYS - _ASKED_AGAIN_DAYS
        sql.execute(_POSTPONE, {"ids": old, "days": again})
        unnamed = sql.rows(_STILL_OLD, {"ids": old, "days": KEPT_DAYS})
        return sql.execute(_REMOVE, {"ids": [row[0] for row in unnamed]}) if unnamed else 0


def images_delete(channel_id: UUID, limit: int) -> int:
    """Deletes some of the channel's images. Returns how many."""
    ids = Image.objects.filter(channel_id=channel_id).values_list("pk", flat=True)[:limit]
    return sql.execute(_REMOVE, {"ids": list(ids)})


def removals_purge() -> int:
    """Deletes objects from the bucket, a few in a call. Returns how many; 0 also if the bucket does
    not respond. Calls nothing in a transaction: a process that dies leaves the rows to the next."""
    if not settings.IMAGES_BUCKET_URL:
        return 0
    due = [row[0] for row in sql.rows(_CLAIM_REMOVALS, {"limit": _REMOVALS})]
    for key in due:
        try:
            bucket_delete(key)
        except BucketFailed:
            logger.warning("images.bucket_failed")
            return 0
        ImageRemoval.objects.filter(pk=key).delete()
    return len(due)


def _again(image: Image) -> Image | None:
    """The stored image with the same content, kept from now on. None if it is being deleted."""
    same = Image.objects.filter(name=image.name)
    is_kept = same.update(kept_until=Greatest("kept_until", Now()))
    return same.defer("content").first() if is_kept else None


def _require_room(image: Image) -> None:
    own = Image.objects.filter(channel_id=image.channel_id)
    if own.count() >= MOST_IMAGES:
        detail = gettext("The channel has %(most)s images. Delete one first.") % {
            "most": MOST_IMAGES
        }
        raise ImageRefused("too_many", detail)
    stored = own.aggregate(sum=Sum("size"))["sum"] or 0
    if stored + image.size > MOST_TOTAL_BYTES:
        detail = gettext("The channel's images have %(size)s MB. Delete one first.") % {
            "size": MOST_TOTAL_BYTES // 10**6
        }
        raise ImageRefused("too_many", detail)


def _upload(image: Image, content: bytes) -> None:
    """Puts the content into the bucket. The removal is stored first, so that no object is left if
    this process dies before the image is."""
    due_at = sql.now() + timedelta(seconds=_UPLOAD_SECONDS)
    ImageRemoval.objects.create(pk=image.pk, due_at=due_at)
    bucket_put(image.pk, content, image.content_type)
    image.content = None


def require_image(image: Image | None) -> Image:
    """Raises NotFound for None."""
    if image is None:
        raise NotFound("There is no such image.")
    return image


# In SQL, because the ORM has no DELETE that inserts into another table.
_REMOVE: Final = """
WITH gone AS (
  DELETE FROM notifications_app_image WHERE id = ANY(%(ids)s)
  RETURNING id, content IS NULL AS is_in_bucket
), removals AS (
  INSERT INTO notifications_app_imageremoval (id) SELECT id FROM gone WHERE is_in_bucket
)
SELECT id FROM gone
"""
# Writes only if that matters, because many sends may name one image.
_KEEP: Final = """
UPDATE notifications_app_image
SET kept_until = coalesce(%(until)s, statement_timestamp())
WHERE id IN (
  SELECT id FROM notifications_app_image
  WHERE name = ANY(%(names)s) AND channel_id = %(channel)s
    AND kept_until < coalesce(%(until)s, statement_timestamp()) - interval '1 hour'
  ORDER BY id FOR NO KEY UPDATE)
"""
_OLD: Final = """
SELECT id FROM notifications_app_image
WHERE kept_until < statement_timestamp() - make_interval(days => %(days)s)
ORDER BY kept_until LIMIT %(limit)s
FOR UPDATE SKIP LOCKED
"""
_POSTPONE: Final = """
UPDATE notifications_app_image AS image
SET kept_until = statement_timestamp() - make_interval(days => %(days)s)
WHERE id = ANY(%(ids)s) AND (
  EXISTS (SELECT FROM notifications_app_template AS each
          WHERE each.channel_id = image.channel_id AND strpos(each.content_json, image.name) > 0)
  OR EXISTS (SELECT FROM notifications_app_draft AS each
             WHERE each.channel_id = image.channel_id AND strpos(each.form::text, image.name) > 0)
  OR EXISTS (SELECT FROM notifications_app_schedule AS each
             WHERE each.channel_id = image.channel_id AND strpos(each.send_json, image.name) > 0)
  OR EXISTS (SELECT FROM notifications_app_automation AS each
             WHERE each.channel_id = image.channel_id AND strpos(each.send_json, image.name) > 0)
  OR EXISTS (SELECT FROM notifications_app_newsfeed AS each
             WHERE each.channel_id = image.channel_id AND strpos(each.send_json, image.name) > 0))
"""
_STILL_OLD: Final = """
SELECT id FROM notifications_app_image
WHERE id = ANY(%(ids)s)
  AND kept_until < statement_timestamp() - make_interval(days => %(days)s)
"""
_CLAIM_REMOVALS: Final = """
UPDATE notifications_app_imageremoval SET due_at = statement_timestamp() + interval '10 minutes'
WHERE id = ANY(ARRAY(
  SELECT id FROM notifications_app_imageremoval WHERE due_at <= statement_timestamp()
  ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING id
"""
