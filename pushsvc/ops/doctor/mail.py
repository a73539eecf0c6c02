"""The mail server, if EMAIL_URL names one: whether it accepts this installation's mails."""

from collections.abc import Iterator
from smtplib import SMTPException
from typing import Final

from django.conf import settings

from channels_app.sign_in.mailing import connected
from pushsvc.common.findings import Finding, Kind, good
from pushsvc.common.mail_server import Security

_SECONDS: Final = 3.0
_PROTECTION: Final = {Security.STARTTLS: "STARTTLS", Security.TLS: "TLS", Security.NONE: "no TLS"}


def examine() -> Iterator[Finding]:
    server = settings.MAIL_SERVER
    if server is None:
        return
    try:
        with connected(_SECONDS):
            yield good("mail", f"The mail server {server.address} accepts mails")
    except (OSError, SMTPException) as error:
        yield Kind.MAIL_FAILING.found(
            address=server.address,
            error=f"{type(error).__name__}: {error}",
            protection=_PROTECTION[server.security],
        )
