"""`manage.py doctor` names each error with its remedy."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from bench.ports import own_port
from pushsvc.ops.doctor import database
from tests.admin.sign_in import mail_server
from tests.admin.sign_in.mail_server import running_mail_server
from tests.ops.doctor.findings import errors, report, the_error

pytestmark = pytest.mark.django_db


def test_a_healthy_installation_has_a_line_for_each_part(healthy):
    found, _ = report()

    assert errors() == {}
    lines = {(each["code"], each["title"]) for each in found if each["severity"] == "ok"}
    assert {code for code, _ in lines} == {"settings", "database", "redis", "broker", "work"}
    assert ("work", "Nothing is late or failing") in lines


def test_each_finding_is_a_line_with_its_code_and_the_remedy_below(healthy, settings):
    """A finding of `manage.py check --deploy` here, with its id."""
    settings.TRUSTED_PROXIES = 0
    output = StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", stdout=output)

    lines = output.getvalue().splitlines()
    line = lines.index(
        "error   setting: PUBLIC_BASE_URL is https, and TRUSTED_PROXIES is 0 (pushsvc.E019)"
    )
    assert lines[line + 1].startswith(" " * 8 + "Limits count the proxy that ends TLS")
    assert all(len(line) <= 100 for line in lines)


def test_the_exit_status_is_nonzero_only_for_errors(healthy, settings, monkeypatch):
    monkeypatch.setattr(database, "_MUST_BE_ON", {})
    settings.APNS_SERVER = "127.0.0.1:8102"
    assert the_error()[0] == "APNS_SERVER is 127.0.0.1:8102 (pushsvc.W005)"
    assert report()[1] == 0

    settings.TRUSTED_PROXIES = 0
    assert report()[1] == 1


@pytest.mark.parametrize("name", ["REDIS_URL", "CELERY_BROKER_URL"])
def test_an_address_that_no_program_can_read_ends_the_report_without_a_traceback(
    healthy, settings, name
):
    setattr(settings, name, "redis://127.0.0.1:6379/0?timeout=5")

    found, status = report()

    assert status == 1
    (wrong,) = [each["title"] for each in found if each["code"] == "setting"]
    assert wrong.startswith(f"{name} is not a")
    assert ("database", "ok") in {(each["code"], each["severity"]) for each in found}


def test_an_unreachable_redis_and_broker_are_separate_findings(healthy, settings):
    port = own_port()
    settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{port}/0"
    title, remedy = the_error()
    assert title.startswith("The broker redis://")
    assert f"127.0.0.1:{port}/0 is unavailable" in title
    assert "Check CELERY_BROKER_URL" in remedy

    settings.REDIS_URL = f"redis://127.0.0.1:{own_port()}/0"
    assert "Check REDIS_URL" in errors()["Redis is unavailable, or accepts no writes"]


def test_the_mail_server_is_tried_if_there_is_one(healthy, settings, tmp_path):
    with running_mail_server(tmp_path) as server:
        mail_server.use(settings, server)
        assert errors() == {}
        title = f"The mail server localhost:{server.port}"
        assert f"{title} accepts mails" in [each["title"] for each in report()[0]]

        mail_server.use(settings, server, password="wrong")
        remedy = errors()[f"{title} cannot be used"]
        assert "535" in remedy
        assert "the user and the password in EMAIL_URL" in remedy

        settings.PROVIDER_CA_FILE = ""
        assert errors()[f"{title} cannot be used"].startswith("SSLCertVerificationError")
    assert "wrong" not in str(report())


def test_no_password_is_printed(healthy, settings):
    settings.CELERY_BROKER_URL = f"amqp://shop:hunter2@127.0.0.1:{own_port()}//"

    found, _ = report()
    assert "hunter2" not in json.dumps(found)
    assert [each for each in found if each["code"] == "broker_unavailable"]
