"""`manage.py doctor` names each fault and its remedy."""

import json
import os
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from datetime import timedelta
from io import StringIO

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from bench.ports import own_port
from channels_app.models import Channel, IdentityKey, ProviderCredential
from pushsvc.common import sameness
from pushsvc.common.store import metric_reports
from pushsvc.common.store.metric_reports import Reporter
from pushsvc.common.store.redis_client import redis_client
from pushsvc.doctor import database
from pushsvc.sandbox.certificate import server_chain
from tests.admin.notifications.dashboards import everything_lives
from tests.admin.sign_in import mail_server
from tests.admin.sign_in.mail_server import running_mail_server
from tests.factories import make_channel
from tests.forked import CHECKOUT
from tests.pipeline import phones

pytestmark = pytest.mark.django_db

# The test server trades safety on power loss for speed.
OF_THE_TEST_SERVER = {f"The setting {name} is off" for name in database._HARMFUL}


def report(*arguments):
    """Its findings, and its exit status."""
    output, status = StringIO(), 0
    try:
        call_command("doctor", "--json", *arguments, stdout=output)
    except SystemExit as ended:
        status = ended.code
    return json.loads(output.getvalue())["findings"], status


def faults(*arguments):
    """{title: remedy} of every finding that is not good, except the test server's own settings."""
    found, _ = report(*arguments)
    return {
        each["title"]: each["remedy"]
        for each in found
        if each["tone"] in {"warn", "bad"} and each["title"] not in OF_THE_TEST_SERVER
    }


@pytest.fixture
def healthy(settings):
    """Every fault that a test can prevent is absent."""
    everything_lives()
    redis_client().delete(metric_reports._PROCESSES)
    settings.PUBLIC_BASE_URL = "https://push.example.com"
    settings.ALLOWED_HOSTS = ["push.example.com"]
    settings.VAPID_SUBJECT = "mailto:root@example.org"
    settings.TRUSTED_PROXIES = 1
    settings.FCM_API_BASE, settings.APNS_SERVER = "https://fcm.googleapis.com", ""
    settings.SECURE_SSL_REDIRECT = settings.SESSION_COOKIE_SECURE = True
    settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_HSTS_SECONDS = 3600
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = settings.SECURE_HSTS_PRELOAD = True
    return make_channel()


def test_a_healthy_installation_has_a_line_for_each_part(healthy):
    found, _ = report()

    assert faults() == {}
    lines = {(each["subject"], each["title"]) for each in found if each["tone"] == "ok"}
    assert {subject for subject, _ in lines} == {"settings", "database", "redis", "broker", "work"}
    assert ("work", "Nothing is late or failing (1 channels)") in lines


def test_each_finding_is_a_line_with_its_remedy_below(healthy, settings):
    settings.TRUSTED_PROXIES = 0
    output = StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", stdout=output)

    lines = output.getvalue().splitlines()
    line = lines.index("bad   settings     PUBLIC_BASE_URL is https, TRUSTED_PROXIES is 0")
    assert lines[line + 1].startswith(" " * 19 + "TLS ends in a proxy")
    assert all(len(line) <= 100 for line in lines)


def test_the_exit_status_is_nonzero_only_for_bad_findings(healthy, settings, monkeypatch):
    monkeypatch.setattr(database, "_HARMFUL", {})
    assert report()[1] == 0

    settings.TRUSTED_PROXIES = 0
    assert report()[1] == 1


def test_an_unreachable_database_is_the_only_finding_about_it():
    """In a process of its own, because this one's connection is the test's."""
    environment = {**os.environ, "DATABASE_URL": f"postgresql://127.0.0.1:{own_port()}/away"}
    command = [sys.executable, "manage.py", "doctor", "--json"]
    ended = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1, ended.stderr
    found = json.loads(ended.stdout)["findings"]
    (finding,) = [each for each in found if each["subject"] in {"database", "work"}]
    assert finding["title"] == "PostgreSQL cannot be reached"
    assert "Check DATABASE_URL" in finding["remedy"]


@pytest.fixture
def reporting(settings):
    """Lets a process report that has these settings in place of the doctor's."""

    def report_with(**others):
        own = {name: getattr(settings, name) for name in others}
        for name, value in others.items():
            setattr(settings, name, value)
        Reporter("worker", take=dict).report()
        for name, value in own.items():
            setattr(settings, name, value)

    return report_with


@pytest.mark.parametrize(
    ("others", "what"),
    [
        ({"SECRET_KEY": "x" * 50}, "have another SECRET_KEY"),
        ({"CREDENTIAL_KEYS": ("other",)}, "have other CREDENTIAL_KEYS"),
    ],
)
def test_processes_with_other_keys_are_named_with_their_machine(healthy, reporting, others, what):
    reporting()
    assert faults() == {}

    reporting(**others)
    reporting(**others)

    ((title, remedy),) = faults().items()
    assert title == f"Worker processes on {socket.gethostname()} {what} (2)"
    assert "same settings" in remedy


def test_processes_may_differ_as_they_do_while_keys_are_replaced(healthy, reporting, settings):
    former = secrets.token_urlsafe(48)
    settings.SECRET_KEY_FALLBACKS = [former]
    settings.CREDENTIAL_KEYS = (*settings.CREDENTIAL_KEYS, Fernet.generate_key().decode())
    reporting(
        SECRET_KEY=former,
        SECRET_KEY_FALLBACKS=[settings.SECRET_KEY],
        CREDENTIAL_KEYS=settings.CREDENTIAL_KEYS[::-1],
    )

    assert faults() == {}


def test_processes_of_another_version_are_named(healthy, reporting, tmp_path, settings):
    """Of a checkout with one file more."""
    for package in sameness._PACKAGES:
        shutil.copytree(settings.BASE_DIR / package, tmp_path / package)
    (tmp_path / "pushsvc" / "later.py").write_text("")
    sameness.code.cache_clear()
    reporting(BASE_DIR=tmp_path)
    sameness.code.cache_clear()

    ((title, remedy),) = faults().items()
    assert title == f"Worker processes on {socket.gethostname()} run other code than this (1)"
    assert "restart them" in remedy


def test_processes_of_a_version_that_does_not_say_what_it_is_are_no_finding(healthy):
    reporter = Reporter("worker", take=dict)
    reporter._process = "worker:0123456789abcdef"
    reporter.report()

    assert faults() == {}


def test_the_mail_server_is_tried_if_there_is_one(healthy, settings, tmp_path):
    with running_mail_server(tmp_path) as server:
        mail_server.use(settings, server)
        assert faults() == {}
        good = f"The mail server localhost:{server.port} takes mails"
        assert good in [each["title"] for each in report()[0]]

        mail_server.use(settings, server, password="wrong")
        refused = f"The mail server localhost:{server.port} refuses the login"
        assert "535" in faults()[refused]
        assert "Check the user and the password in EMAIL_URL" in faults()[refused]

        settings.PROVIDER_CA_FILE = ""
        unusable = faults()[f"The mail server localhost:{server.port} cannot be used"]
    assert unusable.startswith("SSLCertVerificationError")
    assert "wrong" not in str(report())


def test_settings_that_lose_data_are_bad(healthy):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    found, _ = report()

    (finding,) = [each for each in found if "synchronous_commit" in each["title"]]
    assert finding["tone"] == "bad"
    assert "ALTER SYSTEM SET synchronous_commit = on" in finding["remedy"]


def test_a_missing_migration_is_named_with_the_command(healthy):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")

    remedy = faults()["1 migrations are not applied"]
    assert "sessions.0001_initial" in remedy
    assert "manage.py migrate" in remedy


def test_a_table_that_is_not_there_yet_does_not_end_the_report(healthy):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE channels_app_providercredential RENAME TO elsewhere")

    assert "providercredential" in faults()["The work that goes on could not be read"]


def test_an_invalid_index_is_named_with_the_statement_that_drops_it(healthy):
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'batch_breaking'::regclass"
        )

    remedy = faults()["The index batch_breaking is invalid"]
    assert "DROP INDEX CONCURRENTLY batch_breaking" in remedy


def test_an_old_transaction_is_named_with_its_process(healthy, monkeypatch):
    monkeypatch.setattr(database, "OLD_TRANSACTION", timedelta(0))
    parameters = connection.get_connection_params()
    arguments = {name: parameters[name] for name in ("host", "port", "dbname", "user", "password")}
    with psycopg.connect(**arguments, application_name="forgotten") as other:
        other.execute("SELECT 1")
        found = faults()
        pid = other.info.backend_pid

    (title,) = [title for title in found if "A transaction of forgotten" in title]
    assert f"pg_terminate_backend({pid})" in found[title]


def test_clocks_that_differ_are_named(healthy, monkeypatch):
    """The question takes time, and half of it is the most by which the figure can be wrong."""
    real = database.time.time
    monkeypatch.setattr(database.time, "time", lambda: real() + 90)

    began = real()
    found, status = report()
    took = real() - began

    (finding,) = [each for each in found if "clocks" in each["title"]]
    assert (finding["tone"], status) == ("bad", 1)
    told = re.fullmatch(r"The clocks .* differ by (\d+) s", finding["title"])
    assert abs(int(told[1]) - 90) <= took / 2 + 0.5


def test_few_remaining_connections_are_a_finding(healthy, settings):
    settings.WEB_CONCURRENCY = 200

    (remedy,) = [text for title, text in faults().items() if title.startswith("max_connections")]
    assert "PgBouncer" in remedy


def test_connections_that_run_out_are_named_with_who_has_them(healthy, monkeypatch):
    monkeypatch.setattr(database, "FEW_CONNECTIONS", 1.0)

    (title,) = [title for title in faults() if "connections are in use" in title]
    assert re.fullmatch(r"\d+ of \d+ connections are in use, \d+ of them by pushsvc", title)


def test_a_replication_slot_that_nobody_reads_is_named(healthy, monkeypatch):
    monkeypatch.setattr(database, "MUCH_WAL", -1)
    slot = f"left_{os.getpid()}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_create_physical_replication_slot(%s, true)", [slot])
        try:
            found = faults()
        finally:
            cursor.execute("SELECT pg_drop_replication_slot(%s)", [slot])

    (title,) = [title for title in found if slot in title]
    assert title.startswith(f"The replication slot {slot} is not read and keeps 0.0 GB")
    assert f"pg_drop_replication_slot('{slot}')" in found[title]


def test_rows_that_are_not_frozen_are_named_before_writes_are_refused(healthy, monkeypatch):
    monkeypatch.setattr(database, "OLD_ROWS", 0)

    (title,) = [title for title in faults() if title.startswith("Rows were not frozen")]
    assert "run VACUUM" in faults()[title]


def test_an_unreachable_redis_and_broker_are_separate_findings(healthy, settings):
    port = own_port()
    settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{port}/0"
    found = faults()
    (title,) = found
    assert title.startswith("The broker redis://")
    assert f"127.0.0.1:{port}/0 cannot be reached" in title
    assert "Check CELERY_BROKER_URL" in found[title]

    settings.REDIS_URL = f"redis://127.0.0.1:{own_port()}/0"
    assert "Redis cannot be reached" in faults()


def test_no_password_is_printed(healthy, settings):
    settings.CELERY_BROKER_URL = f"amqp://shop:hunter2@127.0.0.1:{own_port()}//"

    found, _ = report()
    assert "hunter2" not in json.dumps(found)
    assert [each for each in found if each["subject"] == "broker" and each["tone"] == "bad"]


def test_the_dashboards_concerns_are_reported_for_all_channels(healthy):
    Channel.objects.update(android_enabled=True)

    remedy = faults()["Android has no credentials (Alice's shop)"]
    assert "Google" in remedy


def test_a_paused_credential_is_reported_in_the_push_services_words(healthy):
    ProviderCredential.objects.create(
        channel=healthy,
        platform="ios",
        secret_encrypted="x",
        paused_at=timezone.now(),
        paused_code="invalid_provider_token",
        paused_detail="InvalidProviderToken",
    )

    (remedy,) = [text for title, text in faults().items() if title.startswith("iOS is paused")]
    assert remedy.endswith("They said: invalid_provider_token: InvalidProviderToken")


@pytest.mark.django_db(transaction=True)
def test_credentials_are_checked_only_on_request(healthy, settings, fcm):
    account = phones.store_google(fcm, healthy)
    accepted = {"tone": "ok", "title": "The Android credentials of Alice's shop are accepted"}
    assert accepted.items() <= report("--send")[0][-1].items()

    fcm.revoke(account)
    assert not [each for each in report()[0] if each["subject"] == "credentials"]
    assert "The Android credentials of Alice's shop are refused" in faults("--send")


def test_a_credential_that_cannot_be_decrypted_is_named(healthy):
    ProviderCredential.objects.create(channel=healthy, platform="ios", secret_encrypted="x")

    remedy = faults("--send")["The iOS credentials of Alice's shop cannot be decrypted"]
    assert "CREDENTIAL_KEYS" in remedy


def test_secrets_that_cannot_be_decrypted_are_counted_without_calls(healthy):
    IdentityKey.objects.create(channel=healthy, algorithm="HS256", secret_encrypted="x")
    IdentityKey.objects.create(channel=healthy, algorithm="ES256", public_key="pem")

    assert "CREDENTIAL_KEYS" in faults()["1 stored secrets cannot be decrypted"]


@contextmanager
def web_server(answer, tmp_path, monkeypatch, name="127.0.0.1"):
    """The address of a TLS server that answers once; this process trusts its authority."""
    chain, authority = server_chain(name)
    (tmp_path / "chain.pem").write_bytes(chain)
    (tmp_path / "authority.pem").write_text(authority)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "chain.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            peer, _ = listener.accept()
            with suppress(ssl.SSLError), context.wrap_socket(peer, server_side=True) as connection:
                connection.recv(10_000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


HSTS = "Strict-Transport-Security: max-age=31536000\r\n"


def answered(status, body="", headers=HSTS):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n{body}".encode()


def test_the_public_address_is_called_as_a_browser_would(healthy, tmp_path, monkeypatch):
    with web_server(answered("200 OK", "{}"), tmp_path, monkeypatch) as url:
        found, _ = report("--url", url)

    assert found[-1]["title"] == "127.0.0.1 answers over TLS"


def test_a_proxy_that_drops_the_scheme_is_named(healthy, tmp_path, monkeypatch):
    with web_server(answered("200 OK", "{}", headers=""), tmp_path, monkeypatch) as url:
        found = faults("--url", url)

    title = "The proxy of 127.0.0.1 does not say that requests come by https"
    assert "X-Forwarded-Proto" in found[title]


def test_a_public_host_that_is_not_allowed_is_named(healthy, settings):
    settings.ALLOWED_HOSTS = ["other.example.com"]
    title = "ALLOWED_HOSTS lacks push.example.com, the host of PUBLIC_BASE_URL"
    assert "host_not_allowed" in faults()[title]

    settings.ALLOWED_HOSTS = [".example.com"]
    assert faults() == {}


def test_the_answer_of_a_proxy_is_quoted(healthy, tmp_path, monkeypatch):
    with web_server(answered("502 Bad Gateway", "nobody"), tmp_path, monkeypatch) as url:
        found = faults("--url", url)

    assert "It said: nobody" in found["127.0.0.1 answers 502 to GET /healthz"]


def test_a_self_signed_certificate_is_refused(healthy, tmp_path, monkeypatch):
    with web_server(answered("200 OK"), tmp_path, monkeypatch) as url:
        monkeypatch.delenv("SSL_CERT_FILE")
        found = faults("--url", url)

    (title,) = [title for title in found if title.startswith(url)]
    assert "certificate" in found[title]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://push.example.com", "is not an https address"),
        ("https://nowhere.invalid", "the name is not known"),
        ("https://push.example.com:99999", "is not an https address"),
    ],
)
def test_an_invalid_public_address_is_a_finding(healthy, url, said):
    (title,) = [title for title in faults("--url", url) if title.startswith(url)]
    assert said in title
