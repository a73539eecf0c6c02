"""System checks name each setting that cannot work when a process starts."""

import os

import pytest
from cryptography.fernet import Fernet

from channels_app.checks import check_deployment, check_settings
from pushsvc.common.env import Env, EnvError
from tests import forked

SECRET = "5ecret-" * 9


def ids(found=None):
    return [message.id for message in (check_settings() if found is None else found)]


def test_the_settings_of_this_run_pass_every_check():
    assert ids() == []


WRONG = [
    ("SECRET_KEY", "unset-and-refused-by-the-checks", "E002"),
    ("CREDENTIAL_KEYS", (), "E003"),
    ("CREDENTIAL_KEYS", (Fernet.generate_key().decode(), SECRET), "E004"),
    ("REDIS_URL", "localhost:6379", "E005"),
    ("REDIS_URL", "amqp://localhost", "E005"),
    ("REDIS_URL", "redis://[::1/0", "E005"),
    ("REDIS_URL", "redis://localhost/0?timeout=5", "E005"),
    ("REDIS_URL", "rediss://localhost/0?ssl_cert_reqs=no", "E005"),
    ("CELERY_BROKER_URL", "postgres://localhost", "E006"),
    ("CELERY_BROKER_URL", "localhost", "E006"),
    ("CELERY_BROKER_URL", "amqp://localhost?timeout=5", "E006"),
    ("WEBPUSH_TRUSTED_ORIGINS", frozenset({"push.example.com"}), "E007"),
    ("WEBPUSH_TRUSTED_ORIGINS", frozenset({"https://push.example.com/wpush"}), "E007"),
    ("WEBHOOK_TRUSTED_ORIGINS", frozenset({"backend.internal"}), "E007"),
    ("WEBPUSH_TRUSTED_ORIGINS", frozenset({"https://a@push.example.com"}), "E007"),
    ("WEBPUSH_TRUSTED_ORIGINS", frozenset({"https://push.example.com:port"}), "E007"),
    ("WEBPUSH_ALLOWED_HOSTS", ("https://push.example.com",), "E008"),
    ("WEBPUSH_ALLOWED_HOSTS", ("*.push.example.com",), "E008"),
    ("PUBLIC_BASE_URL", "push.example.com", "E009"),
    ("PUBLIC_BASE_URL", "https://push.example.com/push", "E009"),
    ("VAPID_SUBJECT", "admin@example.com", "E010"),
    ("VAPID_SUBJECT", "mailto:root@localhost", "E010"),
    ("PROVIDER_CA_FILE", "/nonexistent/ca.pem", "E011"),
    ("PROVIDER_CA_FILE", __file__, "E011"),
    ("FCM_API_BASE", "fcm.googleapis.com", "E012"),
    ("FCM_API_BASE", "https://fcm.googleapis.com/v1", "E012"),
    ("GOOGLE_TOKEN_URI", "oauth2.googleapis.com/token", "E013"),
    ("APNS_SERVER", "api.push.apple.com", "E014"),
    ("APNS_SERVER", "https://api.push.apple.com:443", "E014"),
]


@pytest.mark.parametrize(("name", "value", "code"), WRONG)
def test_an_invalid_setting_is_named(settings, name, value, code):
    setattr(settings, name, value)

    (message,) = check_settings()

    assert message.id == f"pushsvc.{code}"
    assert name in message.msg
    assert SECRET not in message.msg


RIGHT = [
    ("REDIS_URL", "rediss://user:password@redis.example.com:6380/1"),
    ("REDIS_URL", "unix:///run/redis.sock"),
    ("REDIS_URL", "rediss://localhost/0?ssl_cert_reqs=required&ssl_ca_certs=/etc/redis.pem"),
    ("CELERY_BROKER_URL", "amqps://user:password@rabbit.example.com//"),
    ("CELERY_BROKER_URL", "redis+socket:///run/redis.sock"),
    ("WEBPUSH_TRUSTED_ORIGINS", frozenset({"http://127.0.0.1:8030", "https://[::1]:9"})),
    ("WEBPUSH_ALLOWED_HOSTS", ("push.services.mozilla.com", "localhost")),
    ("PUBLIC_BASE_URL", "https://push.example.com:8443"),
]


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_a_valid_setting_is_accepted(settings, name, value):
    setattr(settings, name, value)

    assert ids() == []


def test_an_unreadable_variable_is_named(settings):
    settings.ENV = Env(errors=[EnvError("WEB_CONCURRENCY", "is 'many', expected a number")])

    (message,) = check_settings()

    assert (message.id, "WEB_CONCURRENCY" in message.msg) == ("pushsvc.E001", True)


PUBLIC = {
    "VAPID_SUBJECT": "mailto:push@example.org",
    "PUBLIC_BASE_URL": "https://push.example.org",
    "ALLOWED_HOSTS": [".example.org"],
    "TRUSTED_PROXIES": 1,
    "REDIS_URL": "rediss://127.0.0.1:6380/0?ssl_cert_reqs=required",
    "FCM_API_BASE": "https://fcm.googleapis.com",
    "APNS_SERVER": "",
    "DEMO_RECORD": "",
}


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("VAPID_SUBJECT", "mailto:push@example.com", "W001"),
        ("PUBLIC_BASE_URL", "http://push.example.org", "W002"),
        ("REDIS_URL", "rediss://127.0.0.1:6380/0?ssl_cert_reqs=none", "W003"),
        ("FCM_API_BASE", "http://127.0.0.1:8101", "W005"),
        ("APNS_SERVER", "127.0.0.1:8102", "W005"),
        ("TRUSTED_PROXIES", 0, "E019"),
        ("ALLOWED_HOSTS", ["other.example.com"], "E020"),
        ("DEMO_RECORD", "/srv/demo.json", "E021"),
    ],
)
def test_a_setting_that_is_unsafe_in_public_is_named_by_the_deployment_check(
    settings, name, value, code
):
    for each, safe in PUBLIC.items():
        setattr(settings, each, safe)
    assert ids(check_deployment()) == []

    setattr(settings, name, value)

    (message,) = check_deployment()
    assert message.id == f"pushsvc.{code}"
    assert name in message.msg or name == "REDIS_URL"


def test_settings_for_development_are_accepted_there(settings):
    settings.PUBLIC_BASE_URL, settings.VAPID_SUBJECT = "http://localhost:8000", "mailto:a@b.org"
    settings.DEMO_RECORD, settings.APNS_SERVER = "/srv/demo.json", "127.0.0.1:8102"

    assert ids(check_deployment()) == ["pushsvc.W002"]


def check(**environment):
    return run("django check --deploy --fail-level WARNING", **environment)


def run(module, **environment):
    """The exit code and the output of a module with its arguments."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "pushsvc.settings"} | environment
    return forked.run(f"python -m {module}", environment, timeout=600)


PRODUCTION = {
    "SECRET_KEY": SECRET,
    "PUBLIC_BASE_URL": "https://push.example.org",
    "ALLOWED_HOSTS": "push.example.org",
    "VAPID_SUBJECT": "mailto:push@example.org",
    "TRUSTED_PROXIES": "1",
}


def test_a_production_environment_passes_the_deployment_check():
    brokers = "amqp://rabbit:5672/1;amqp://other:5672/1"
    code, said = check(**PRODUCTION, CELERY_BROKER_URL=brokers)

    assert code == 0, said


def test_a_bad_environment_stops_the_start_with_every_error_and_no_traceback():
    code, said = check(
        **PRODUCTION, WORKER_CONCURRENCY="many", REDIS_URL="nowhere", METRICS_TOKEN=""
    )

    assert code != 0
    assert "WORKER_CONCURRENCY" in said
    assert "REDIS_URL" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "redis://:secret#word@127.0.0.1:6379/0"),
        ("CELERY_BROKER_URL", "amqp://rabbit/1;redis://:secret/word@127.0.0.1:6379/0"),
        ("PUBLIC_BASE_URL", "https://[secret.example.org"),
        ("IMAGES_BUCKET_URL", "https://secret:word@[s3.example.org/bucket"),
        ("OIDC_ISSUER", "https://[accounts.example.org"),
        ("SENTRY_DSN", "https://secret@sentry.example.org/project"),
        ("SENTRY_DSN", "https://sentry.example.org/1"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
    ],
)
def test_an_address_that_cannot_be_read_is_named_without_its_password(name, value):
    code, said = run("django check", **PRODUCTION | {name: value})

    assert code != 0
    assert f"pushsvc.E001) {name} is " in said
    assert "secret" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "process",
    ["pushsvc.asgi", "pushsvc.worker plan", "celery -A pushsvc beat"],
    ids=["web", "worker", "beat"],
)
def test_no_process_starts_with_an_invalid_setting(process):
    code, said = run(process, **PRODUCTION | {"TRUSTED_PROXIES": "two"})

    assert code != 0
    assert "TRUSTED_PROXIES is 'two'" in said
    assert "Traceback" not in said
