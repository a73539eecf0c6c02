"""Alerts: tells members by mail, and webhooks, of findings about channels.

A finding is claimed by a row of Alert, in the transaction that writes its message and its mails. So
each is told once, however many processes look, and not again until the wait in AGAIN has passed. To
alert of another kind of finding, add it to AGAIN and to `channels_attention`.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction

from channels_app.feeds import EventKind, message_add
from channels_app.models import Account, Alert, Channel
from channels_app.sign_in import mailing, mails
from notifications_app.reporting.attention import channels_attention
from pushsvc.common.findings import Finding, Kind
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp

logger = structlog.stdlib.get_logger(__name__)

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
}
_MOST: Final = 1_000  # findings of a kind in a run
_MOST_MAILED: Final = 20  # findings in a mail
_MOST_SUBJECT: Final = 250  # characters of a mail's subject

# As the console's own pages route them. Workers have no routes.
_DASHBOARD: Final = "/admin/?channel={}"
OWN_ALERTS: Final = "/admin/auth/user/alerts/"


def raise_due() -> None:
    """Tells what was not told lately: one mail for each member of an account, and one message for
    each finding. Two processes at once tell different findings."""
    now = sql.now()
    told = {_key(each): each.told_at for each in Alert.objects.all()}
    due = [each for each in channels_attention(now, _MOST) if _is_due(each, told, now)]
    for account_id, found in _by_account(due).items():
        _tell(account_id, found)
    Alert.objects.filter(told_at__lt=now - max(AGAIN.values())).delete()


def _key(about: Alert | Finding) -> tuple[UUID | None, str, str]:
    return about.channel_id, about.code, about.subject


def _is_due(finding: Finding, told: dict[Any, datetime], now: datetime) -> bool:
    if finding.code not in AGAIN or finding.channel_id is None:
        return False
    last = told.get(_key(finding))
    return last is None or last <= now - AGAIN[finding.code]


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
    if not mails.is_on():
        return
    first, *others = found
    subject = f"{first.title} ({first.channel_name})"
    if others:
        subject = f"{len(found)} problems: {subject} and others"
    body = mailing.rendered(
        "mail/alert.txt",
        {
            "account": Account.objects.get(pk=account_id),
            "found": [(each, _url(each)) for each in found[:_MOST_MAILED]],
            "more": len(found[_MOST_MAILED:]),
            "origin": settings.PUBLIC_BASE_URL,
            "opt_out": f"{settings.PUBLIC_BASE_URL}{OWN_ALERTS}",
        },
    )
    mails.alert(account_id=account_id, subject=_line(subject), body=body)


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
