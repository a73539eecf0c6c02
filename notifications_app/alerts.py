"""Alerts: tells members by mail, and webhooks, of findings about channels.

A finding is claimed by a row of Alert, in the transaction that writes its message and its mails. So
each is told once, however many processes look, and not again until the wait in AGAIN has passed, or
a day if it ended meanwhile. A finding is not claimed while nobody would get it. To alert of another
kind of finding, add it to AGAIN and to `channels_attention`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import get_language, ngettext

from channels_app.feeds import EventKind, message_add
from channels_app.models import Account, Alert, Channel, Webhook
from channels_app.sign_in import mailing, mails
from notifications_app.reporting.attention import channels_attention
from pushsvc.common.findings import Finding, Kind
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp

logger = structlog.stdlib.get_logger(__name__)

Key = tuple[UUID | None, str, str]
Told = Mapping[Key, Alert]

_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(days=7)
# The findings that are told, and when one that lasts is told again.
AGAIN: Final = {
    Kind.PLATFORM_PAUSED.code: _DAY,
    Kind.API_KEY_ENDS.code: _WEEK,
    Kind.LIMITED.code: _WEEK,
    Kind.WEBHOOK_FAILING.code: _WEEK,
    Kind.WEBHOOK_DISABLED.code: _WEEK,
    Kind.SCHEDULE_DISABLED.code: _WEEK,
    Kind.AUTOMATION_DISABLED.code: _WEEK,
    Kind.NEWSFEED_DISABLED.code: _WEEK,
    Kind.NEWSFEED_FAILING.code: _WEEK,
}
_MOST: Final = 100_000  # findings of a kind in a run
_MOST_TOLD: Final = 1_000  # of an account in a run, which others wait for
_MOST_MAILED: Final = 20  # findings in a mail
_MOST_SUBJECT: Final = 250  # characters of a mail's subject

# As the console's own pages route them. Workers have no routes.
_DASHBOARD: Final = "/admin/?channel={}"


def raise_due() -> None:
    """Tells what was not told lately: one mail for each member of an account, and one message for
    each finding. Two processes at once tell different findings. An account whose findings cannot be
    told delays no other."""
    now = sql.now()
    told = {_key(each): each for each in Alert.objects.all()}
    found, is_whole = channels_attention(_reachable(), now, _MOST)
    due = [each for each in found if _is_due(each, told, now)]
    for account_id, own in _by_account(due).items():
        try:
            _tell(account_id, own[:_MOST_TOLD])
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("alert.failed", account=account_id)
    if is_whole:  # otherwise a problem that lasts may not be among them
        _forget_ended(told, found, now)


def _reachable() -> QuerySet[Channel]:
    """The channels whose alerts somebody gets."""
    hears = Webhook.objects.filter(
        Q(is_enabled=True) | ~Q(disabled_code=""),
        channel=OuterRef("pk"),
        events__contains=[EventKind.ALERT],
    )
    is_reachable = Q(Exists(hears))
    if mails.is_on():
        is_reachable |= Q(Exists(mails.alerted().filter(account=OuterRef("account"))))
    return Channel.objects.filter(is_reachable, deletion_asked_at__isnull=True)


def _forget_ended(told: Told, found: Sequence[Finding], now: datetime) -> None:
    """Problems that ended, and begin again after a day, are told again."""
    lasting = {_key(each) for each in found}
    before = now - min(AGAIN.values())
    ended = [row.pk for key, row in told.items() if key not in lasting and row.told_at < before]
    Alert.objects.filter(pk__in=ended, told_at__lt=before).delete()


def _key(about: Alert | Finding) -> Key:
    return about.channel_id, about.code, about.subject


def _is_due(finding: Finding, told: Told, now: datetime) -> bool:
    if finding.code not in AGAIN or finding.channel_id is None:
        return False
    last = told.get(_key(finding))
    return last is None or last.told_at <= now - AGAIN[finding.code]


def _by_account(found: Sequence[Finding]) -> dict[UUID, list[Finding]]:
    ids = {each.channel_id for each in found if each.channel_id}
    accounts = dict(Channel.objects.filter(pk__in=ids).values_list("pk", "account_id"))
    grouped = defaultdict(list)
    for each in found:
        if each.channel_id in accounts:
            grouped[accounts[each.channel_id]].append(each)
    return grouped


@transaction.atomic
def _tell(account_id: UUID, found: Sequence[Finding]) -> None:
    """Claims the findings, and tells those that no other process has claimed."""
    columns = {
        "channel": [each.channel_id for each in found],
        "code": [each.code for each in found],
        "subject": [each.subject for each in found],
        "least": min(AGAIN.values()),
    }
    claimed = set(sql.rows(_CLAIM, columns))
    own = [each for each in found if _key(each) in claimed]
    if not own:
        return
    for each in own:
        message_add(EventKind.ALERT, each.channel_id, **_said(each))  # type: ignore[arg-type] # _is_due
        logger.info("alert.raised", code=each.code, channel=each.channel_id)
    _mail(account_id, own)


def _said(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "channel_name": finding.channel_name,
        "platform": finding.platform or None,
        "title": finding.title,
        "remedy": finding.remedy,
        "quote": finding.quote or None,
        "since": format_timestamp(finding.since) if finding.since else None,
        "url": _url(finding) or None,
    }


def _url(finding: Finding) -> str:
    """The dashboard of the channel, which shows the finding with a link to its remedy."""
    origin = settings.PUBLIC_BASE_URL
    return f"{origin}{_DASHBOARD.format(finding.channel_id)}" if origin else ""


def _mail(account_id: UUID, found: Sequence[Finding]) -> None:
    account = Account.objects.get(pk=account_id)
    mails.alert(account_id=account_id, write=lambda: _written(account, _translated(found)))


def _translated(found: Sequence[Finding]) -> Sequence[Finding]:
    """The findings in the language that is active, as far as they are still found."""
    if get_language() == settings.LANGUAGE_CODE:
        return found
    channels = Channel.objects.filter(pk__in={each.channel_id for each in found})
    again = {_key(each): each for each in channels_attention(channels, sql.now(), _MOST)[0]}
    return [again.get(_key(each), each) for each in found]


def _written(account: Account, found: Sequence[Finding]) -> tuple[str, str]:
    """Subject and body of the mail."""
    subject = f"{found[0].title} ({found[0].channel_name})"
    if len(found) > 1:
        subject = ngettext(
            "%(count)s problem: %(first)s and others",
            "%(count)s problems: %(first)s and others",
            len(found),
        ) % {"count": len(found), "first": subject}
    body = mailing.rendered(
        "mail/alert.txt",
        {
            "account": account,
            "found": [(each, _url(each)) for each in found[:_MOST_MAILED]],
            "more": len(found[_MOST_MAILED:]),
            "origin": settings.PUBLIC_BASE_URL,
            "opt_out": f"{settings.PUBLIC_BASE_URL}{mails.OWN_MAILS}",
        },
    )
    return _line(subject), body


def _line(text: str) -> str:
    """A header of a mail is one line."""
    return " ".join(text.split())[:_MOST_SUBJECT]


# Raw, because the ORM's upsert has no condition. Whoever waits for another process's row then reads
# its new time, and claims nothing. In one order, so that two processes do not wait for each other.
_CLAIM: Final = """
INSERT INTO channels_app_alert AS alert (channel_id, code, subject, told_at)
SELECT channel, code, subject, statement_timestamp()
FROM unnest(%(channel)s::uuid[], %(code)s::text[], %(subject)s::text[])
  AS found (channel, code, subject)
ORDER BY channel, code, subject
ON CONFLICT (channel_id, code, subject) DO UPDATE SET told_at = excluded.told_at
WHERE alert.told_at <= excluded.told_at - %(least)s
RETURNING channel_id, code, subject
"""
