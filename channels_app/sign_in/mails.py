"""The queue of mails: links to set a password, which are not stored, alerts, and approvals.

A row is an entry of the queue. A worker sends the mail (`mailing.py`) and deletes the row. There
are no mails unless EMAIL_URL is set. A mail is in its receiver's language; in LANGUAGE_CODE if that
is unknown, because the receiver never signed in.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, QuerySet, When
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext, override

from channels_app import audit
from channels_app.models import Account, Mail, Membership, Reader, Role
from channels_app.sign_in.addresses import folded
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.ratelimit import Limit, take
from pushsvc.common.ids import uuid7_at
from pushsvc.common.store import sql

# Seconds until the next attempt. They are longer than an attempt takes, so that no mail is sent
# twice at once.
WAITS: Final = (120, 300, 900, 3600, 3600)
MOST_ATTEMPTS: Final = len(WAITS)
ALERTS_TRIED_FOR: Final = timedelta(days=1)  # because a problem is not reported again soon
NEWS_FOR: Final = timedelta(days=7)  # how long alerts and mails about approvals wait at most
MOST_REQUESTS: Final = 1_000  # requests for a new password that wait at once
MOST_ALERTED: Final = 50  # members of an account
MOST_ASKED: Final = 60  # requests and decisions of an account that are mailed in an hour
Write = Callable[[], tuple[str, str]]  # subject and body, in the language that is active
OWN_MAILS: Final = "/admin/auth/user/alerts/"  # as the console routes it


def is_on() -> bool:
    return settings.MAIL_SERVER is not None


def language_keep(*, user: User, language: str) -> None:
    """Mails to the user are in this language from now on."""
    Reader.objects.bulk_create(
        [Reader(user=user, language=language)],
        update_conflicts=True,
        unique_fields=["user"],
        update_fields=["language"],
    )


@transaction.atomic
def invite(*, user: User, account: Account | None = None) -> None:
    """Queues a mail to the user with a link to choose a password. Raises Invalid without an
    address, and after too many mails."""
    if not (is_on() and user.email):
        raise Invalid(
            [FieldError("email", "required", gettext("There is no address to send a mail to."))]
        )
    account_id = account.pk if account else None
    if _is_used_up("invitation-mails", str(account_id), settings.INVITATION_MAILS_PER_HOUR):
        raise Invalid(
            [FieldError("", "too_many", gettext("Too many mails were sent. Try again in an hour."))]
        )
    note = "A mail with a link to set a password was ordered."
    audit.record(user, audit.Action.UPDATE, note=note, account_id=account_id)
    Mail.objects.create(user=user, account=account)


def ask_for_link(*, address: str, asked_from: str) -> None:
    """Queues a mail with a link to the users with this e-mail address, if there are any.

    Takes the same steps whether or not there are any. Ignores requests beyond RESET_MAILS_PER_HOUR
    for the address, or beyond MOST_REQUESTS that wait.
    """
    if _is_used_up("reset-mails", _digest(address), settings.RESET_MAILS_PER_HOUR):
        return
    if Mail.objects.filter(user=None)[:MOST_REQUESTS].count() >= MOST_REQUESTS:
        return
    Mail.objects.create(address=address, asked_from=asked_from)


def alerted(role: Role = Role.MANAGER) -> QuerySet[Membership]:
    """The members with this role or more who get mails of their account: those with an address,
    unless they opted out."""
    members = Membership.objects.filter(
        role__in=[each for each in Role if each.includes(role)],
        gets_alerts=True,
        user__is_active=True,
    )
    return members.exclude(user__email="")


def alert(*, account_id: UUID, write: Write) -> None:
    """Queues a mail to each manager and owner who gets mails, owners first, at most MOST_ALERTED.
    Does nothing without a mail server."""
    if is_on():
        members = alerted().filter(account_id=account_id).order_by("-role", "pk")
        _queue(members, account_id, Role.MANAGER, write)


def ask(
    *,
    account_id: UUID,
    role: Role,
    write: Write,
    only: User | None = None,
    others_than: User | None = None,
) -> None:
    """Queues a mail about an approval to the members with `role` or more who get mails, at most
    MOST_ALERTED: to all, to `only` one, or to all others. Does nothing without a mail server, and
    beyond MOST_ASKED an hour."""
    if not is_on() or _is_used_up("approval-mails", str(account_id), MOST_ASKED):
        return
    members = alerted(role).filter(account_id=account_id).order_by("pk")
    if only is not None:
        members = members.filter(user=only)
    if others_than is not None:
        members = members.exclude(user=others_than)
    _queue(members, account_id, role, write)


def _queue(members: QuerySet[Membership], account_id: UUID, role: Role, write: Write) -> None:
    """Writes a text for each language."""
    users = dict(members.values_list("user_id", "user__reader__language")[:MOST_ALERTED])
    texts = {}
    for language in set(users.values()):
        with override(language or settings.LANGUAGE_CODE):
            texts[language] = write()
    Mail.objects.bulk_create(
        Mail(
            user_id=user_id,
            account_id=account_id,
            least_role=role,
            subject=texts[language][0],
            body=texts[language][1],
        )
        for user_id, language in users.items()
    )


def is_any_due() -> bool:
    return is_on() and Mail.objects.filter(due_at__lte=Now()).exists()


@transaction.atomic
def claim() -> Mail | None:
    """Claims a mail that is due, alerts last; no other process gets it before its next attempt is
    due. None if no mail is due."""
    due = Mail.objects.select_for_update(skip_locked=True, of=("self",)).filter(due_at__lte=Now())
    is_alert = Case(When(body="", then=False), default=True)
    mail = due.select_related("user", "account").order_by(is_alert, "due_at").first()
    if mail is not None:
        wait = WAITS[min(mail.attempts, len(WAITS) - 1)]
        mail.attempts += 1
        again_at = Now() + timedelta(seconds=wait)
        Mail.objects.filter(pk=mail.pk).update(attempts=mail.attempts, due_at=again_at)
    return mail


def defer_due() -> None:
    """Defers all due mails by a minute, because the mail server does not work."""
    again_at = Now() + timedelta(minutes=1)
    Mail.objects.filter(due_at__lte=Now()).update(due_at=again_at)


def mails_purge(limit: int) -> int:
    """Deletes at most `limit` alerts and mails about approvals that waited for NEWS_FOR, because
    the mail server does not work: one is tried in a minute, so more may arrive than are given up.
    Returns how many."""
    before = uuid7_at(sql.now() - NEWS_FOR)  # ids sort by time
    return sql.execute(_PURGE, {"before": before, "limit": limit})


def _is_used_up(name: str, key: str, quota: int) -> bool:
    standing = take(Limit(name, key, quota, 3600))
    return standing is not None and standing.is_refused


def _digest(address: str) -> str:
    """A keyed hash of the address, so that Redis stores no addresses."""
    return salted_hmac("channels_app.mails.limit", folded(address)).hexdigest()[:32]


# Raw, because the ORM cannot skip locked rows in a DELETE: such a mail is being claimed.
_PURGE: Final = """
DELETE FROM channels_app_mail WHERE id = ANY(ARRAY(
  SELECT id FROM channels_app_mail WHERE id < %(before)s AND body <> ''
  ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
"""
