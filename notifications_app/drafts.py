"""Drafts: notifications that staff are writing. Sending a draft deletes it."""

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content import SendRequest
from notifications_app.models import Draft
from notifications_app.services import Acceptance, notification_accept
from pushsvc.common.errors import Conflict, Fault, Invalid, NotFound

MOST_DRAFTS: Final = 200  # for each channel
MOST_BYTES: Final = 16 * 1024  # of a draft's fields, as JSON


def draft_create(*, channel: Channel, owner: User, form: Mapping[str, Any]) -> Draft:
    """Raises Conflict if the channel has MOST_DRAFTS, and Invalid for a form that is too long."""
    _check_size(form)
    with transaction.atomic():
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        if Draft.objects.filter(channel=channel).count() >= MOST_DRAFTS:
            raise Conflict(f"The channel has {MOST_DRAFTS} drafts. Delete one first.")
        return Draft.objects.create(channel=channel, owner=owner, changed_by=owner, form=dict(form))


def draft_save(
    *, draft_id: UUID, version: int, channel: Channel, user: User, form: Mapping[str, Any]
) -> Draft:
    """Replaces the form that the user saw as `version`. Safe to repeat.

    The draft moves to `channel`. Raises NotFound if the draft was sent or deleted, Conflict if it
    was changed since, and Invalid for a form that is too long.
    """
    _check_size(form)
    with transaction.atomic():
        draft = _locked(draft_id)
        is_moved = draft.channel_id != channel.pk
        if draft.form == form and not is_moved:
            return draft
        if draft.version != version:
            raise Conflict(f"{draft.changed_by} has changed this draft. Reload the page to see it.")
        draft.form = {**form, "segment_id": ""} if is_moved else dict(form)
        draft.channel, draft.changed_by, draft.version = channel, user, version + 1
        draft.changed_at = Now()
        draft.save(update_fields=("form", "channel", "changed_by", "version", "changed_at"))
    return draft


def draft_delete(draft: Draft) -> None:
    with transaction.atomic():
        audit.record(draft, audit.Action.DELETE, note=f"A draft of {draft.owner}.")
        draft.delete()


def draft_send(
    draft: Draft | None, *, channel: Channel, request: SendRequest, body: Any, idempotency_key: str
) -> Acceptance:
    """As `notification_accept`. Deletes the draft in the same transaction."""
    with transaction.atomic():
        acceptance = notification_accept(
            channel=channel, request=request, body=body, idempotency_key=idempotency_key
        )
        if draft is not None:
            Draft.objects.filter(pk=draft.pk).delete()
    return acceptance


def _locked(draft_id: UUID) -> Draft:
    found = Draft.objects.select_related("changed_by").select_for_update(of=("self",))
    draft = found.filter(pk=draft_id).first()
    if draft is None:
        raise NotFound("This draft was sent or deleted.")
    return draft


def _check_size(form: Mapping[str, Any]) -> None:
    size = len(json.dumps(form, ensure_ascii=False).encode())
    if size > MOST_BYTES:
        detail = f"A draft may have {MOST_BYTES:,} bytes. This one has {size:,}."
        raise Invalid([Fault("", Invalid.code, detail)])
