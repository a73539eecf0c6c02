import tempfile
from pathlib import Path

import pytest

from local.embedded import start
from pushsvc.common.store.redis_client import redis_client
from tests.admin.notifications.dashboards import everything_lives
from tests.factories import make_channel
from tests.ops.doctor.findings import report_all
from tests.ops.doctor.installation import Installation, as_role


@pytest.fixture
def healthy(settings):
    """Every error that a test can prevent is absent."""
    redis_client().flushdb()  # breakers that other tests opened
    everything_lives()
    settings.PUBLIC_BASE_URL = "https://push.example.com"
    settings.ALLOWED_HOSTS = ["push.example.com"]
    settings.VAPID_SUBJECT = "mailto:root@example.org"
    settings.TRUSTED_PROXIES = 1
    settings.FCM_API_BASE, settings.APNS_SERVER = "https://fcm.googleapis.com", ""
    settings.SECURE_SSL_REDIRECT = settings.SESSION_COOKIE_SECURE = True
    settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_HSTS_SECONDS = 3600
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = settings.SECURE_HSTS_PRELOAD = True
    report_all()
    return make_channel()


@pytest.fixture(scope="module")
def installation():
    """Of the module, whose tests break it and mend it again."""
    with tempfile.TemporaryDirectory(prefix="pushsvc-ops-") as folder:
        servers = start(Path(folder) / "home", durable=False)
        try:
            made = Installation(servers.environment)
            code, said = made.run("migrate --no-input")
            assert code == 0, said
            yield made
        finally:
            servers.stop()


@pytest.fixture
def role(installation):
    """A role to which a test gives settings."""
    installation.sql("CREATE ROLE app LOGIN PASSWORD 'app'", "GRANT pg_read_all_data TO app")
    yield as_role(installation, "app")
    installation.sql("DROP OWNED BY app", "DROP ROLE app")


@pytest.fixture
def worker_role(installation, role):
    """A role with all rights that pushsvc needs."""
    every = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public"
    installation.sql("REVOKE pg_read_all_data FROM app", f"GRANT {every} TO app")
    return role
