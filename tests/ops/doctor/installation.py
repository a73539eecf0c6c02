"""A migrated database and a Redis of their own, and what the doctor says of them as a process."""

import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

import psycopg
import redis
from cryptography.fernet import Fernet

from tests.ops.helpers import CHECKOUT

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

    def run(self, *arguments, timeout=None, **environment):
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CHECKOUT,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def connect(self, name="operator", **arguments):
        return psycopg.connect(self.url, application_name=name, autocommit=True, **arguments)

    def sql(self, *statements):
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def doctor(self, **environment):
        """{title: (tone, remedy)} of what is not good, and the exit status."""
        ended = self.run("doctor", "--json", **environment)
        assert ended.stdout, ended.stderr
        return {
            each["title"]: (each["tone"], each["remedy"])
            for each in json.loads(ended.stdout)["findings"]
            if each["tone"] in {"warn", "bad"}
        }, ended.returncode


def the(found, words):
    ((title, finding),) = [each for each in found.items() if words in each[0]]
    return title, *finding


def as_role(installation, name):
    """DATABASE_URL for another role."""
    parts = urlsplit(installation.url)
    return parts._replace(netloc=f"{name}:{name}@127.0.0.1:{parts.port}").geturl()
