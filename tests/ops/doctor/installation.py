"""A migrated database and a Redis, and what the doctor, as a process, finds there."""

import json
import os
from urllib.parse import urlsplit

import psycopg
import redis
from cryptography.fernet import Fernet

from tests import forked

SECRETS = {
    "SECRET_KEY": "k" * 50,
    "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
    "PUBLIC_BASE_URL": "https://push.example.com",
    "ALLOWED_HOSTS": "push.example.com",
    "VAPID_SUBJECT": "mailto:root@example.org",
    "TRUSTED_PROXIES": "1",
}


class Installation:
    """A migrated database and a Redis. `sql` and `redis` are the operator's own connections."""

    def __init__(self, addresses):
        self.environment = os.environ | SECRETS | addresses
        self.environment.pop("CELERY_BROKER_URL", None)
        self.url = addresses["DATABASE_URL"]
        self.redis = redis.Redis.from_url(addresses["REDIS_URL"], decode_responses=True)

    def run(self, command, *, timeout=None, **environment):
        """The exit code of a command of manage.py, and what it wrote."""
        command = f"python manage.py {command}"
        return forked.run(command, self.environment | environment, timeout=timeout)

    def connect(self, name="operator", **arguments):
        return psycopg.connect(self.url, application_name=name, autocommit=True, **arguments)

    def sql(self, *statements):
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def doctor(self, *, timeout=None, **environment):
        """{title: (severity, remedy)} of what is not good."""
        code, said = self.run("doctor --json", timeout=timeout, **environment)
        _, begin, report = f"\n{said}".partition("\n{\n")  # after what was logged
        assert begin, said
        found = {
            each["title"]: (each["severity"], each["remedy"])
            for each in json.loads(begin + report)["findings"]
            if each["severity"] in {"warning", "error"}
        }
        has_errors = "error" in {severity for severity, _ in found.values()}
        assert code == (1 if has_errors else 0)
        return found

    def expect(self, title, severity, *remedies, **environment):
        """Expects this finding, and returns all."""
        found = self.doctor(**environment)
        expect(found, title, severity, *remedies)
        return found


def expect(found, title, severity, *remedies):
    ((found_severity, remedy),) = [each for words, each in found.items() if title in words]
    assert found_severity == severity
    for words in remedies:
        assert words in remedy


def as_role(installation, name):
    """DATABASE_URL for another role."""
    parts = urlsplit(installation.url)
    return parts._replace(netloc=f"{name}:{name}@127.0.0.1:{parts.port}").geturl()
