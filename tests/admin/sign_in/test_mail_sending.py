"""Mails that fail, and who sends those that wait, over a real mail server."""

import socket
from datetime import timedelta
from threading import Thread

from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

from channels_app.models import Mail
from channels_app.sign_in import mailing, mails
from notifications_app import retention
from pushsvc.common.ids import uuid7_at
from pushsvc.common.logs import TextFormatter
from pushsvc.common.mail_server import MailServer, Security
from tests.admin.browsing import Browser
from tests.admin.sign_in import mail_server
from tests.admin.sign_in.mail_orders import FORGOT, VIEWER, ask, invite, mailed
from tests.admin.sign_in.mail_server import link_in, running_mail_server
from tests.pipeline.processes import running_web


def attempted(caplog):
    """(event, error) of one attempt; the mail is then due again."""
    caplog.clear()
    mailing.send_due()
    Mail.objects.update(due_at="2020-01-01T00:00Z")
    return [(record.message, record.error) for record in own(caplog)]


def own(caplog):
    """Without what the mail server logs."""
    return [record for record in caplog.records if record.name == mailing.__name__]


def logged(caplog):
    """The lines of the log."""
    return "\n".join(TextFormatter().format(record) for record in own(caplog))


def test_a_mail_that_fails_is_tried_five_times_and_its_failure_is_in_the_audit_log(
    alice, server, caplog
):
    server.refusal = "450 try later"
    invite(alice, email="carol@example.com")
    outcomes = [attempted(caplog) for _ in range(5)]

    assert outcomes[:4] == [[("mail.deferred", "SMTPRecipientsRefused")]] * 4
    assert outcomes[4] == [("mail.given_up", "SMTPRecipientsRefused")]
    assert not Mail.objects.exists()
    last = LogEntry.objects.order_by("-id")[0]
    assert "could not be sent" in last.additional_data["note"]
    assert last.additional_data["account"] == str(alice.account.pk)
    assert "mail.given_up" in logged(caplog)
    assert "carol" not in logged(caplog)


def test_a_failure_that_nobody_foresaw_is_given_up_too(viewer, server, settings, caplog):
    usual = settings.EMAIL_FROM
    del settings.EMAIL_FROM
    ask()
    outcomes = [attempted(caplog) for _ in range(5)]

    assert [[event for event, _ in each] for each in outcomes] == [
        *[["mail.deferred"]] * 4,
        ["mail.given_up"],
    ]
    assert "Traceback" in logged(caplog)
    settings.EMAIL_FROM = usual
    ask()
    mailing.send_due()
    assert len(mailed(server)) == 1


def test_a_failed_mail_is_not_due_at_once(viewer, server):
    server.refusal = "450 try later"
    ask()
    mailing.send_due()
    server.refusal = ""

    assert mailed(server) == []
    assert Mail.objects.get().attempts == 1


def test_a_recipient_that_is_refused_for_good_is_tried_once(viewer, server, caplog):
    server.refusal = "550 no such mailbox"
    ask()

    assert attempted(caplog) == [("mail.given_up", "SMTPRecipientsRefused")]
    assert not Mail.objects.exists()


def test_a_refused_login_is_logged_with_its_remedy(viewer, server, settings, caplog):
    settings.MAIL_SERVER = MailServer.parse(mail_server.url_of(server, password="wrong"))
    ask()

    assert attempted(caplog) == [("mail.deferred", "SMTPAuthenticationError")]
    assert "Check the user and the password in EMAIL_URL" in logged(caplog)
    assert server.mails == []


def test_a_server_that_is_not_trusted_gets_neither_password_nor_mail(
    viewer, server, settings, caplog
):
    settings.PROVIDER_CA_FILE = ""
    ask()

    assert attempted(caplog) == [("mail.deferred", "SSLCertVerificationError")]
    assert (server.mails, server.logins) == ([], [])


def test_a_server_without_starttls_gets_neither_password_nor_mail(
    viewer, settings, tmp_path, caplog
):
    with running_mail_server(tmp_path, tls="off") as server:
        mail_server.use(settings, server)
        ask()
        assert attempted(caplog) == [("mail.deferred", "SMTPNotSupportedError")]

        settings.MAIL_SERVER = MailServer.parse(
            mail_server.url_of(server, password="", options="?tls=off")
        )
        (mail,) = mailed(server)
    assert (mail["X-Is-Encrypted"], server.logins) == ("False", [])


def test_a_server_with_tls_from_the_start_gets_the_mail(viewer, settings, tmp_path):
    with running_mail_server(tmp_path, tls="tls") as server:
        mail_server.use(settings, server, scheme="smtps", password="")
        ask()
        (mail,) = mailed(server)
    assert mail["X-Is-Encrypted"] == "True"


def test_a_silent_server_is_given_up_after_its_time(viewer, server, settings, caplog):
    settings.MAIL_SECONDS = 0.2
    with socket.create_server(("localhost", 0)) as silent:
        settings.MAIL_SERVER = MailServer(
            "localhost", silent.getsockname()[1], Security.STARTTLS, "push", "secret"
        )
        ask()
        ((event, error),) = attempted(caplog)
    assert (event, error) == ("mail.deferred", "SMTPServerDisconnected")


def test_processes_share_what_is_due(viewer, server, transactional_db):
    for n in range(6):
        Mail.objects.create(address=VIEWER, asked_from=f"192.0.2.{n}")
    threads = [Thread(target=_send_and_close) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    sources = sorted(mail.get_content().split("192.0.2.")[1][0] for mail in server.mails)
    assert sources == list("012345")


def _send_and_close():
    from django.db import connections

    try:
        mailing.send_due()
    finally:
        connections.close_all()


def test_one_process_sends_at_a_time(viewer, server):
    ask()
    cache.add(mailing._SENDING, True)
    assert mailed(server) == []

    cache.delete(mailing._SENDING)
    assert len(mailed(server)) == 1


def test_after_a_failure_of_the_server_the_other_mails_wait_a_minute(viewer, server, settings):
    works = settings.MAIL_SERVER
    settings.MAIL_SERVER = MailServer("localhost", 1, Security.STARTTLS, "push", "secret")
    for _ in range(2):
        ask()
    mailing.send_due()
    settings.MAIL_SERVER = works

    assert sorted(Mail.objects.values_list("attempts", flat=True)) == [0, 1]
    assert mailed(server) == []
    assert not mails.is_any_due()


def test_alerts_do_not_wait_for_a_server_that_fails_for_a_week(alice, server, settings):
    works = settings.MAIL_SERVER
    settings.MAIL_SERVER = MailServer("localhost", 1, Security.STARTTLS, "push", "secret")
    manager = {"user": alice.members["manager"], "account": alice.account}
    User.objects.filter(pk=manager["user"].pk).update(email="manager@example.com")
    for days in (8, 6):
        id_ = uuid7_at(timezone.now() - timedelta(days=days))
        Mail.objects.create(id=id_, subject=f"{days} days ago", body="A problem.", **manager)
    mailing.send_due()

    retention.purge()

    settings.MAIL_SERVER = works
    Mail.objects.update(due_at="2020-01-01T00:00Z")
    assert [each["Subject"] for each in mailed(server)] == ["6 days ago"]


def test_a_worker_sends_the_mails_that_a_web_process_orders(
    viewer, server, settings, tmp_path, transactional_db
):
    server.arrived.clear()
    environment = {
        "EMAIL_URL": mail_server.url_of(server),
        "EMAIL_FROM": mail_server.FROM,
        "PUBLIC_BASE_URL": "http://127.0.0.1",
    }
    processes = ("worker-plan", "beat")
    with running_web(tmp_path / "web.log", *processes, **environment) as address:
        browser = Browser(address)
        status, headers, _ = browser.post(FORGOT, email=VIEWER)
        assert status == 302
        assert "is on its way" in browser.get(headers["Location"])[2]
        assert server.arrived.wait(120)
        (mail,) = server.mails
        assert browser.get(link_in(mail).removeprefix("http://127.0.0.1"))[0] == 302
