"""How the settings name a mail server."""

import pytest
from django.core.checks import run_checks

from pushsvc.common.env import Env
from pushsvc.common.mail_server import MailServer


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example", ("mail.example", 587, "starttls", "", "")),
        ("smtp://u:p%40ss@mail.example:2525", ("mail.example", 2525, "starttls", "u", "p@ss")),
        ("smtps://u:secret@mail.example", ("mail.example", 465, "tls", "u", "secret")),
        ("smtp://127.0.0.1?tls=off", ("127.0.0.1", 25, "none", "", "")),
    ],
)
def test_the_url_says_how_the_connection_is_protected(url, expected):
    server = MailServer.parse(url)

    assert (server.host, server.port, server.security, server.user, server.password) == expected
    assert not server.password or server.password not in repr(server)


@pytest.mark.parametrize(
    "url",
    [
        "mail.example",
        "http://mail.example",
        "smtp://",
        "smtp://u@mail.example",
        "smtp://u:p@mail.example?tls=off",
        "smtp://mail.example?tls=on",
        "smtp://mail.example?tsl=off",
        "smtps://mail.example?tls=off",
        "smtp://mail.example:99999",
        "smtp://mail.example/path",
        "smtp://mail..example",
        "smtp://u:p%C3%A4ss@mail.example",
    ],
)
def test_a_url_that_names_no_mail_server_is_refused_without_its_password(url):
    env = Env({"EMAIL_URL": url})
    env.parsed("EMAIL_URL", None, MailServer.parse, "smtp://…")

    (error,) = env.errors
    assert error.message == "is unreadable, expected smtp://…"


def test_a_mail_server_needs_a_sender_and_a_public_address(server, settings):
    def ids():
        return {message.id for message in run_checks(include_deployment_checks=True)}

    assert not {"pushsvc.E015", "pushsvc.E016", "pushsvc.W004"} & ids()
    settings.EMAIL_FROM, settings.PUBLIC_BASE_URL = "a@b.example\nBcc: c@d.example", ""
    settings.MAIL_SERVER = MailServer.parse("smtp://127.0.0.1?tls=off")
    assert ids() >= {"pushsvc.E015", "pushsvc.E016", "pushsvc.W004"}
