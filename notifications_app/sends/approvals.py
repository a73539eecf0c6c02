"""Approval: a writer asks, and another person, who may send, sends the draft or returns it.

What waits is a version of a draft. Each change of the draft ends the wait (`draft_save`), so what
is approved is what is sent. Mails to those concerned are queued in the transaction of the change.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Role
from channels_app.sign_in import mailing, mails
from notifications_app.content.values import SendRequest
from notifications_app.models import Draft, Notification
from notifications_app.sends.drafts import (
    WITHDRAWN,
    DraftGone,
    draft_changed,
    draft_locked,
)
from notifications_app.sends.services import notification_accept
from pushsvc.common.errors import Conflict, FieldError, Invalid
from pushsvc.common.store import sql
from pushsvc.common.texts import later

MOST_NOTE: Final = 1_000  # characters
# As the console routes it.
PAGE: Final = "/admin/notifications_app/draft/approval/{}/{}/"
_MOST_SUBJECT: Final = 250


class NotWaiting(Conflict):
    detail = later(
        "It no longer waits for approval, because it was changed, returned or withdrawn. Nothing"
        " was done."
    )


@transaction.atomic
def draft_ask(*, draft_id: UUID, version: int, user: User, note: str = "") -> Draft:
    """Asks for approval of the draft that the user saw as `version`. Safe to repeat. Raises
    DraftGone, Conflict if the draft was changed since, and Invalid for a note that is too long."""
    _check_note(note)
    draft = draft_locked(Draft.objects.filter(pk=draft_id))
    if draft.version != version:
        raise draft_changed(draft)
    if draft.is_waiting:
        return draft
    draft.asked_by, draft.asked_at, draft.note, draft.returned_by = user, sql.now(), note, None
    _save(draft)
    audit.record(draft, audit.Action.UPDATE, note="Approval was asked for.")
    words = later("%(user)s asks you to approve “%(draft)s”", user=user, draft=draft)
    _mail(draft, words, user, role=Role.SENDER, others_than=user)
    return draft


@transaction.atomic
def draft_withdraw(*, draft_id: UUID) -> None:
    """Ends the wait. Safe to repeat. Raises DraftGone."""
    draft = draft_locked(Draft.objects.filter(pk=draft_id))
    if draft.is_waiting:
        _end(draft, WITHDRAWN)


@transaction.atomic
def draft_return(*, draft_id: UUID, version: int, user: User, note: str) -> None:
    """Returns the draft that the user saw as `version` to who asked, with a note.

    Raises DraftGone, NotWaiting, Conflict if the user asked, and Invalid for a note that is missing
    or too long.
    """
    _check_note(note, is_required=True)
    draft = _waiting(Draft.objects.filter(pk=draft_id), version, user)
    asked_by = draft.asked_by
    draft.returned_by = user
    _end(draft, f"Returned to {asked_by}.", note)
    words = later("%(user)s returned “%(draft)s” to you", user=user, draft=draft)
    _mail(draft, words, user, role=Role.WRITER, only=asked_by)


@transaction.atomic
def draft_approve(
    *,
    drafts: QuerySet[Draft],
    version: int,
    user: User,
    is_writer: Callable[[User], bool],
    read: Callable[[Mapping[str, Any]], SendRequest],
) -> Notification:
    """As `notification_accept`, for the draft that `drafts` selects and the user saw as `version`.
    Deletes the draft.

    `read`: makes the send of the draft's form. `is_writer`: whether a user may still write in the
    channel. Raises what `read` raises, DraftGone, NotWaiting, and Conflict if the user asked, or if
    who asked is no longer a writer.
    """
    draft = _waiting(drafts, version, user)
    asked_by = draft.asked_by
    if asked_by is None or not is_writer(asked_by):
        raise Conflict(
            gettext(
                "%(asked_by)s may no longer write for this channel, so this cannot be approved. "
                "Edit the draft to send it yourself."
            )
            % {"asked_by": asked_by}
        )
    notification = notification_accept(channel=draft.channel, request=read(draft.form))
    note = f"Approved, and sent as notification {notification.pk}. {asked_by} had asked."
    audit.record(draft, audit.Action.UPDATE, note=note)
    about = {"user": user, "draft": draft}
    words = later("%(user)s sent “%(draft)s”", **about)
    if notification.scheduled_at > notification.created_at:
        words = later("%(user)s scheduled “%(draft)s”", **about)
    _mail(draft, words, user, role=Role.WRITER, only=asked_by)
    draft.delete()
    return notification


def _waiting(drafts: QuerySet[Draft], version: int, user: User) -> Draft:
    """Locks and returns the draft, if the user may decide about this version of it."""
    draft = draft_locked(drafts)
    if draft.sent_version is not None and version <= draft.sent_version:
        raise DraftGone
    if draft.version != version or not draft.is_waiting:
        raise NotWaiting
    if draft.asked_by == user:
        raise Conflict(gettext("You asked for this approval, so another person has to decide."))
    return draft


def _end(draft: Draft, audited: str, note: str = "") -> None:
    draft.asked_by, draft.asked_at, draft.note = None, None, note
    _save(draft)
    audit.record(draft, audit.Action.UPDATE, note=audited)


def _save(draft: Draft) -> None:
    draft.save(update_fields=("asked_by", "asked_at", "note", "returned_by"))


def _check_note(note: str, *, is_required: bool = False) -> None:
    if is_required and not note.strip():
        raise Invalid([FieldError("note", "required", gettext("Write what is to be changed."))])
    if len(note) > MOST_NOTE or "\x00" in note:
        detail = gettext("A note has at most %(most)s characters.") % {"most": f"{MOST_NOTE:,}"}
        raise Invalid([FieldError("note", Invalid.code, detail)])


def _mail(draft: Draft, words: str, user: User, *, role: Role, **whom: User | None) -> None:
    """A mail about the draft, without its content, which may have personal data."""
    write = partial(_written, draft, words, user)
    mails.ask(account_id=draft.channel.account_id, role=role, write=write, **whom)


def _written(draft: Draft, words: str, user: User) -> tuple[str, str]:
    """Subject and body of the mail."""
    origin, channel = settings.PUBLIC_BASE_URL, draft.channel
    body = mailing.rendered(
        "mail/approval.txt",
        {
            "words": words,
            "channel": channel,
            "account": channel.account,
            "note": draft.note,
            "user": user,
            "url": f"{origin}{PAGE.format(channel.pk, draft.pk)}",
            "origin": origin,
            "opt_out": f"{origin}{mails.OWN_MAILS}",
        },
    )
    return " ".join(f"{words} ({channel})".split())[:_MOST_SUBJECT], body
