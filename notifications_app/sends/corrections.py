"""Completes a send that corrects an earlier notification: whom it reaches, in whose place."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Sum
from django.db.models.functions import Now
from django.utils.translation import gettext

from notifications_app.content.values import Content, SendRequest
from notifications_app.errors import DeliveriesDeleted, NotCombinable, StillSending
from notifications_app.models import Batch, Notification
from notifications_app.states import UNFINISHED
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.errors import NotificationNotFound

_TAGGED: Final = ("web", "android")


def with_correction(
    channel_id: UUID, request: SendRequest, replaces: UUID, *, is_started: bool = False
) -> SendRequest:
    """The request with the audience and the place of the notification `replaces`, and with the
    platforms of that one unless it names its own. `is_started`: the correction is being sent, so
    that its audience is not checked again.

    Raises NotificationNotFound, StillSending, DeliveriesDeleted, NotCombinable for another tag or
    topic than the corrected notification has, and Invalid if the deliveries are deleted before the
    correction is due.
    """
    found = Notification.objects.filter(pk=replaces, channel_id=channel_id).first()
    if found is None:
        raise NotificationNotFound("replaces", replaces)
    _check_ended(found)
    if not is_started:
        _check_kept(found, request.scheduled_at)
    platforms = tuple(map(Platform, found.target_platforms))
    return replace(
        request,
        content=_in_its_place(request.content, found.content),
        target_platforms=request.target_platforms or platforms,
        rule={"notification": str(found.pk), "outcome": "delivered"},
        root_id=found.root_id or found.pk,
    )


def check_order(request: SendRequest, *, edited: UUID | None = None) -> None:
    """Raises StillSending while another correction is being sent in the same place, if this one is
    due: devices could get the older one last. `edited`: the pending notification that the request
    replaces. Call it in the transaction that stores the correction: no other one is accepted in
    that place until it ends."""
    if request.root_id is None or (request.scheduled_at and request.scheduled_at > sql.now()):
        return
    if not sql.try_lock(f"correction {request.root_id}"):
        raise StillSending(gettext("Another correction is being accepted. Try again."))
    others = Notification.objects.filter(root_id=request.root_id, status__in=UNFINISHED)
    for other in others.filter(scheduled_at__lte=Now()):
        if other.pk != edited:
            _check_ended(other)


def _check_ended(found: Notification) -> None:
    """Raises StillSending if there may still be deliveries."""
    if not found.is_unfinished:
        return
    if not found.is_stopped:
        detail = gettext("Notification %(id)s is not sent yet. Edit or cancel it instead.")
        if found.started_at:
            detail = gettext("Notification %(id)s is still being sent. Stop it first, or wait.")
        raise StillSending(detail % {"id": found.pk})
    if Batch.objects.leased().filter(notification=found).exists():
        raise StillSending


def _check_kept(found: Notification, due_at: datetime | None) -> None:
    """Retention deletes a batch together with its deliveries."""
    days = settings.DELIVERY_RETENTION_DAYS
    kept = Batch.objects.filter(notification=found).aggregate(sum=Sum("recipient_count"))["sum"]
    if (kept or 0) < found.recipient_count:
        raise DeliveriesDeleted(found.pk, days)
    end = found.finished_at and found.finished_at + timedelta(days=days)
    if due_at and end and due_at >= end:
        detail = gettext(
            "Must be before the deliveries of the corrected notification are deleted: %(end)s."
        ) % {"end": format_timestamp(end)}
        raise Invalid([FieldError("scheduled_at", "out_of_range", detail)])


def _in_its_place(content: Content, corrected: Content) -> Content:
    """The content with the tags and the topic of the corrected notification, by which a device
    finds what a message replaces. Raises NotCombinable for others, and if its variants had tags of
    their own, because the correction is one message for all devices."""
    for variant in corrected.variants:
        if any("tag" in variant.get(name, {}) for name in _TAGGED):
            detail = gettext(
                "Each of its variants has its own tag, so one message cannot replace them all."
            )
            raise NotCombinable("replaces", detail)
    _check_same("topic", content.topic, corrected.topic)
    objects = {}
    for name in _TAGGED:
        own, its = getattr(content, name), getattr(corrected, name)
        _check_same(f"{name}.tag", own.get("tag", ""), its.get("tag", ""))
        objects[name] = own | {"tag": its["tag"]} if "tag" in its else own
    return replace(content, topic=corrected.topic, **objects)


def _check_same(attr: str, given: str, its: str) -> None:
    if given and given != its:
        detail = gettext("Must be that of the corrected notification, which has none.")
        if its:
            detail = gettext("Must be that of the corrected notification, which has `%(own)s`.")
            detail %= {"own": its}
        raise NotCombinable(attr, detail)
