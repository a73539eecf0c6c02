"""The mail server, if EMAIL_URL names one: whether it accepts this installation's mails."""

from collections.abc import Iterator
from smtplib import SMTPAuthenticationError, SMTPException
from typing import Final

from django.conf import settings

from channels_app.sign_in.mailing import connected
from pushsvc.common.mail_server import Security
from pushsvc.ops.doctor.finding import Finding, Tone

_SECONDS: Final = 3.0
_WITHOUT_LINKS: Final = "Nobody gets an invitation or a link to set a password by mail."


def examine() -> Iterator[Finding]:
    server = settings.MAIL_SERVER
    if server is None:
        return
    try:
        with connected(_SECONDS):
            yield Finding("mail", Tone.OK, f"The mail server {server.address} takes mails")
    except SMTPAuthenticationError as error:
        remedy = f"It answers {error.smtp_code}. {_WITHOUT_LINKS} Check the user and the password "
        title = f"The mail server {server.address} refuses the login"
        yield Finding("mail", Tone.BAD, title, f"{remedy}in EMAIL_URL.")
    except (OSError, SMTPException) as error:
        yield _unusable(server.address, server.security, error)


def _unusable(address: str, security: Security, error: Exception) -> Finding:
    protection = {Security.STARTTLS: "STARTTLS", Security.TLS: "TLS", Security.NONE: "no TLS"}
    remedy = (
        f"{type(error).__name__}: {error}. {_WITHOUT_LINKS} Check EMAIL_URL, which asks for "
        f"{protection[security]}, and that this machine reaches the server."
    )
    return Finding("mail", Tone.BAD, f"The mail server {address} cannot be used", remedy)
