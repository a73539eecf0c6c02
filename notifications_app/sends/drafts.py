"""Drafts: notifications that staff are writing. Sending a draft deletes it."""

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.values import SendRequest
from notifications_app.models import Draft, Notification
from notifications_app.sends.services import notification_accept
from pushsvc.common.errors import Conflict, FieldError, Invalid, NotFound
from pushsvc.common.texts import later

MOST_DRAFTS: Final = 200  # for each channel
MOST_BYTES: Final = 48 * 1024  # of a draft's fields, as JSON
WITHDRAWN: Final = "The request for approval was withdrawn."
_SAVED: Final = (
    *("form", "channel", "changed_by", "version", "changed_at"),
    *("asked_by", "asked_at", "note"),
)


class DraftGone(NotFound):
    detail = later(
        "This draft was sent, deleted or moved. Look at the notifications before you send it again."
    )


def draft_create(*, channel: Channel, owner: User, form: Mapping[str, Any]) -> Draft:
    """Creates a draft. Raises Conflict if the channel has MOST_DRAFTS, and Invalid for a form that
    is too long."""
    _check_size(form)
    with transaction.atomic():
        _take_place(channel)
        return Draft.objects.create(channel=channel, owner=owner, changed_by=owner, form=dict(form))


def draft_save(
    *, draft_id: UUID, version: int, channel: Channel, user: User, form: Mapping[str, Any]
) -> Draft:
    """Replaces the form that the user saw as `version`. Safe to repeat.

    A change withdraws a request for approval. If `channel` is another one, the draft moves there,
    without its segment. Raises DraftGone if the
    draft was sent or deleted, Conflict if it was changed since or moves to a channel that has
    MOST_DRAFTS, and Invalid for a form that is too long.
    """
    _check_size(form)
    with transaction.atomic():
        draft = draft_locked(Draft.objects.filter(pk=draft_id))
        is_moved = draft.channel_id != channel.pk
        if not is_moved and (draft.form == form or _is_repeated_move(draft, version, user, form)):
            return draft
        if draft.version != version:
            raise draft_changed(draft)
        if is_moved:
            _take_place(channel)
        if draft.is_waiting:
            audit.record(draft, audit.Action.UPDATE, note=WITHDRAWN)
            draft.asked_by, draft.asked_at, draft.note = None, None, ""
        draft.form = _without_segment(form) if is_moved else dict(form)
        draft.channel, draft.changed_by, draft.version = channel, user, version + 1
        draft.changed_at = Now()
        draft.save(update_fields=_SAVED)
    return draft


def draft_delete(*, draft_id: UUID, version: int, user: User) -> Draft:
    """Deletes the draft that the user saw as `version`, and returns it. Raises DraftGone, and
    Conflict if somebody else has changed it since."""
    with transaction.atomic():
        draft = draft_locked(Draft.objects.filter(pk=draft_id))
        if draft.version != version and draft.changed_by != user:
            raise draft_changed(draft)
        audit.record(draft, audit.Action.DELETE, note=f"A draft of {draft.owner}.")
        draft.delete()
    return draft


@transaction.atomic
def draft_send(
    drafts: QuerySet[Draft], *, version: int, channel: Channel, request: SendRequest
) -> Notification:
    """As `notification_accept`. `drafts` selects the draft that is sent. Deletes the draft in the
    same transaction, unless it was changed after the `version` that the user saw.

    Raises DraftGone if the draft was deleted, or if this version or a later one was sent. So two
    users who review a version send it once. Raises Conflict if this version waits for approval.
    """
    draft = draft_locked(drafts)
    if draft.is_waiting and draft.version == version:
        raise Conflict(gettext("It waits for approval. Decide that, or withdraw the request."))
    if draft.sent_version is not None and version <= draft.sent_version:
        raise DraftGone
    if draft.version == version:
        draft.delete()
    else:
        draft.sent_version = version
        draft.save(update_fields=["sent_version"])
    return notification_accept(channel=channel, request=request)


def _take_place(channel: Channel) -> None:
    """Locks the channel, so that no other draft is added before the transaction ends. Raises
    Conflict if the channel has MOST_DRAFTS."""
    Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
    if Draft.objects.filter(channel=channel).count() >= MOST_DRAFTS:
        raise Conflict(
            gettext("The channel has %(most)s drafts. Delete one first.") % {"most": MOST_DRAFTS}
        )


def _is_repeated_move(draft: Draft, version: int, user: User, form: Mapping[str, Any]) -> bool:
    """Whether the last change was the same move: the same user saved `form` over `version`."""
    is_last_change = draft.version == version + 1 and draft.changed_by == user
    return is_last_change and draft.form == _without_segment(form)


def _without_segment(form: Mapping[str, Any]) -> dict[str, Any]:
    """The form for another channel, which has other segments."""
    return {**form, "segment_id": ""}


def draft_changed(draft: Draft) -> Conflict:
    return Conflict(
        gettext("%(changed_by)s has changed this draft. Reload the page to see it.")
        % {"changed_by": draft.changed_by}
    )


def draft_locked(drafts: QuerySet[Draft]) -> Draft:
    """Locks and returns the only draft. Raises DraftGone. Reads no other row in the same statement:
    if that waits for a change of a foreign key, PostgreSQL does not read the new one's row."""
    draft = drafts.select_for_update(of=("self",)).first()
    if draft is None:
        raise DraftGone
    return draft


def _check_size(form: Mapping[str, Any]) -> None:
    size = len(json.dumps(form, ensure_ascii=False).encode())
    if size > MOST_BYTES:
        detail = gettext("A draft may have %(most)s bytes. This one has %(size)s.") % {
            "most": f"{MOST_BYTES:,}",
            "size": f"{size:,}",
        }
        raise Invalid([FieldError("", Invalid.code, detail)])
