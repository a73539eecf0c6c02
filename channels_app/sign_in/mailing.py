"""Sends waiting mails, in a task of the planner's workers.

One process of the installation sends mails at a time, and none for a minute after the mail server
failed, so that planning goes on. A mail is tried MOST_ATTEMPTS times, an alert for ALERTS_TRIED_FOR
at least. The log names the error and its remedy, but no address.
"""

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from smtplib import SMTPAuthenticationError, SMTPException, SMTPRecipientsRefused
from typing import Any, Final

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend
from django.template import Context, Engine
from django.utils import timezone, translation
from django.utils.functional import cached_property
from typing_extensions import override

from channels_app import audit
from channels_app.models import Mail, Reader, Role
from channels_app.sign_in.addresses import users_with
from channels_app.sign_in.mails import (
    ALERTS_TRIED_FOR,
    MOST_ATTEMPTS,
    alerted,
    claim,
    defer_due,
)
from channels_app.sign_in.passwords import unrecorded_path
from pushsvc.common.egress import verifying_context
from pushsvc.common.ids import uuid7_at
from pushsvc.common.mail_server import MailServer, Security
from pushsvc.common.texts import later

logger = structlog.stdlib.get_logger(__name__)

_SENDING: Final = "sign_in.mailing"
_TURN_SECONDS: Final = 30.0
# After a process was killed, others wait for it. Longer than a turn with its last mail.
_SENDING_SECONDS: Final = 150
_USERS_OF_ADDRESS: Final = 5
_LOGIN_REFUSED: Final = "Check the user and the password in EMAIL_URL."
_FAILED: Final = "Check EMAIL_URL and the mail server, by `manage.py doctor`."
_INVITATION: Final = later("Your invitation to send push notifications")
_RESET: Final = later("A link to set a new password")
_NOT_SENT: Final = "The mail with a link to set a password could not be sent."


class MailConnection(EmailBackend):
    """A connection to the server of EMAIL_URL. If the certificate is not valid, or STARTTLS is
    missing, it raises OSError or SMTPException before it sends a password or a mail."""

    def __init__(self, server: MailServer, seconds: float) -> None:
        super().__init__(
            host=server.host,
            port=server.port,
            username=server.user,
            password=server.password,
            use_tls=server.security == Security.STARTTLS,
            use_ssl=server.security == Security.TLS,
            timeout=seconds,
        )

    @cached_property
    @override
    def ssl_context(self) -> ssl.SSLContext:
        return verifying_context(settings.PROVIDER_CA_FILE)


@contextmanager
def connected(seconds: float | None = None) -> Iterator[MailConnection]:
    """A connection that has signed in, if EMAIL_URL has a password. `seconds` limit each response
    of the server. Raises OSError or SMTPException."""
    if settings.MAIL_SERVER is None:
        raise ValueError("EMAIL_URL is not set")
    connection = MailConnection(settings.MAIL_SERVER, seconds or settings.MAIL_SECONDS)
    try:
        connection.open()
        yield connection
    finally:
        connection.close()


def send_due() -> None:
    """Sends due mails until none is left or the turn is over. Does nothing while another process
    sends. A failure never raises; the mail is due again later."""
    if not cache.add(_SENDING, True, timeout=_SENDING_SECONDS):
        return
    until = time.monotonic() + _TURN_SECONDS
    try:
        while time.monotonic() < until and (mail := claim()) and _is_sent(mail):
            pass
    finally:
        cache.delete(_SENDING)


def _is_sent(mail: Mail) -> bool:
    """Tries to send the mail. Returns whether the mail server works."""
    try:
        _send(mail)
    except Exception as error:  # noqa: BLE001 - an unexpected error is a failed attempt, too
        _note_failure(mail, error)
        if isinstance(error, SMTPRecipientsRefused):
            return True
        defer_due()
        return False
    Mail.objects.filter(pk=mail.pk).delete()
    return True


def remedy_for(error: Exception) -> str:
    """What an operator can do about a failed connection or mail."""
    return _LOGIN_REFUSED if isinstance(error, SMTPAuthenticationError) else _FAILED


def _send(mail: Mail) -> None:
    if mail.user is not None and mail.body:
        own = alerted(Role(mail.least_role)).filter(account=mail.account_id, user=mail.user)
        if mail.account_id and own.exists():
            _deliver(mail.user, mail.subject, mail.body)
        return
    if mail.user is not None:
        _send_to(mail.user, _INVITATION, "mail/invitation.txt", mail)
        return
    for user in users_with(mail.address)[:_USERS_OF_ADDRESS]:
        _send_to(user, _RESET, "mail/reset.txt", mail)
        note = f"A link to set a password was mailed. Somebody at {mail.asked_from} asked for it."
        audit.record(user, audit.Action.UPDATE, note=note)


def _send_to(user: User, subject: str, template: str, mail: Mail) -> None:
    """Sends the mail to the stored address of the user, not to the address as it was typed, in the
    language of the user."""
    origin = settings.PUBLIC_BASE_URL
    context: dict[str, Any] = {
        "user": user,
        "account": mail.account,
        "asked_from": mail.asked_from,
        "origin": origin,
        "link": f"{origin}{unrecorded_path(user)}",
    }
    reader = Reader.objects.filter(user=user).first()
    with translation.override(reader.language if reader else settings.LANGUAGE_CODE):
        subject, body = str(subject), rendered(template, context)
    _deliver(user, subject, body)


def rendered(template: str, context: Mapping[str, Any]) -> str:
    """The text of a mail, in the language that is active."""
    templates = Engine(  # workers have no others
        dirs=[str(settings.BASE_DIR / "templates")], builtins=["django.templatetags.i18n"]
    )
    return templates.get_template(template).render(Context(context))


def _deliver(user: User, subject: str, body: str) -> None:
    with connected() as connection:
        EmailMessage(subject, body, settings.EMAIL_FROM, [user.email], connection=connection).send()


def _note_failure(mail: Mail, error: Exception) -> None:
    is_last = _is_final(error) or (mail.attempts >= MOST_ATTEMPTS and not _is_young_alert(mail))
    code = getattr(error, "smtp_code", "")
    is_foreseen = isinstance(error, OSError | SMTPException | ValueError)
    logger.error(
        "mail.given_up" if is_last else "mail.deferred",
        attempt=mail.attempts,
        error=type(error).__name__,
        code=code,
        remedy=remedy_for(error),
        exc_info=not is_foreseen,
    )
    if not is_last:
        return
    Mail.objects.filter(pk=mail.pk).delete()
    if mail.user is not None and not mail.body:
        account_id = mail.account_id
        audit.record(mail.user, audit.Action.UPDATE, note=_NOT_SENT, account_id=account_id)


def _is_young_alert(mail: Mail) -> bool:
    """Ids sort by time."""
    return bool(mail.body) and mail.pk > uuid7_at(timezone.now() - ALERTS_TRIED_FOR)


def _is_final(error: Exception) -> bool:
    """Whether the server refuses the recipient for good (RFC 5321 section 4.2.1)."""
    if not isinstance(error, SMTPRecipientsRefused):
        return False
    return all(code >= 500 for code, _ in error.recipients.values())
