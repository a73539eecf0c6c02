"""The steps of a Python buildpack and of a platform that runs the Procfile, in a clean folder.

The platform's PostgreSQL and Redis are reached over TLS only, with self-signed certificates.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from types import SimpleNamespace
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import kombu
import psycopg
import pytest
import redis
from cryptography.fernet import Fernet
from psycopg import sql
from typing_extensions import override

from bench.ports import own_port
from sandbox import running_sandbox
from tests import leftovers
from tests.forked import procfile
from tests.ops.helpers import CHECKOUT, eventually
from tests.ops.tls_front import tls_front
from tests.pipeline.processes import Processes
from tests.plugin import environment_for_downloads
from tests.proxy.nginx import make_certificate

HOST = "push.example.org"
NOT_PUSHED = shutil.ignore_patterns(
    ".git", ".venv", "var", "__pycache__", ".*_cache", ".hypothesis"
)
OF_THE_PLATFORM = {"DATABASE_URL", "REDIS_URL", "PORT"}
OF_THE_TEST = {"WEBPUSH_TRUSTED_ORIGINS"}
# What the platform's proxy adds to each request.
PROXIED = {"Host": HOST, "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}


@pytest.fixture(scope="module")
def slug(tmp_path_factory):
    """What the buildpack leaves: the code, its packages, its static files."""
    root = tmp_path_factory.mktemp("slug")
    app = root / "app"
    shutil.copytree(CHECKOUT, app, ignore=NOT_PUSHED, symlinks=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / "python"], check=True)
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
    python = root / "python" / "bin" / "python"
    into = ["--python", str(python), "-r", "requirements.txt"]
    subprocess.run([*install, *into], cwd=app, env=environment_for_downloads(), check=True)
    built = SimpleNamespace(
        app=app, python=python, path=f"{python.parent}:/usr/bin:/bin", home=root
    )
    built.collected = run(built, "collectstatic", "--noinput")
    return built


def run(slug, *command, **settings):
    """The output of manage.py, which knows nothing of the test's environment."""
    environment = {"PATH": slug.path, "HOME": str(slug.home), **settings}
    done = subprocess.run(
        [slug.python, "manage.py", *command],
        cwd=slug.app,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls") / "certificate.pem")


@pytest.fixture(scope="module")
def redis_url(certificate):
    """As the platform sets it."""
    plain = urlsplit(os.environ["REDIS_URL"])
    redis.Redis.from_url(plain.geturl()).flushdb()
    with tls_front(certificate, (plain.hostname, plain.port)) as port:
        yield plain._replace(
            scheme="rediss", netloc=f":{plain.password or ''}@127.0.0.1:{port}"
        ).geturl()


@pytest.fixture(scope="module")
def database_url(certificate):
    """As the platform sets it, of an empty database."""
    server = urlsplit(os.environ["DATABASE_URL"])
    name = f"buildpack_{uuid4().hex}"
    with psycopg.connect(server.geturl(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    with tls_front(certificate, (server.hostname, server.port), is_asked=True) as port:
        place = f"{server.username}:{server.password}@127.0.0.1:{port}"
        yield f"postgres://{place}/{name}?sslmode=require"
    with psycopg.connect(server.geturl(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def push_service():
    with running_sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def config(database_url, redis_url, push_service):
    """What the platform sets, what README.md says that the owner sets, and what a test adds."""
    return {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "PORT": str(own_port()),
        "SECRET_KEY": uuid4().hex * 2,
        "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
        "ALLOWED_HOSTS": HOST,
        "PUBLIC_BASE_URL": f"https://{HOST}",
        "VAPID_SUBJECT": "mailto:ops@example.org",
        "TRUSTED_PROXIES": "1",
        "REDIS_TLS_VERIFY": "off",
        "WEBPUSH_TRUSTED_ORIGINS": push_service.origin,
    }


@pytest.fixture(scope="module")
def platform(slug, config, tmp_path_factory):
    """An HTTP client that stands for the platform's proxy, once `release` and all processes have
    started."""
    environment = {"PATH": slug.path, "HOME": str(slug.home), **config}
    log_path = tmp_path_factory.mktemp("platform") / "log"
    with log_path.open("w+") as log:
        processes = SlugProcesses(log, slug, environment)
        try:
            assert processes.start("release").wait(300) == 0
            for name in ("web", "worker-plan", "worker-web", "beat"):
                processes.start(name)
            with httpx.Client(
                base_url=f"http://127.0.0.1:{config['PORT']}", headers=PROXIED
            ) as http:
                eventually(lambda: is_ready(http), seconds=120)
                yield http
        finally:
            processes.stop()
            log.seek(0)
            print(log.read())  # noqa: T201 (pytest shows it where a test failed)


class SlugProcesses(Processes):
    """The slug's own, started as a platform does."""

    def __init__(self, log, slug, environment):
        super().__init__(log)
        self._slug = slug
        self._environment = environment

    @override
    def start(self, name):
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {procfile(self._slug.app)[name]}"],
            cwd=self._slug.app,
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        leftovers.end_group_with_us(process.pid)
        self._started.append(process)
        return process


def is_ready(http):
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def test_the_root_folder_has_the_files_that_a_buildpack_needs():
    lines = (CHECKOUT / "requirements.txt").read_text().splitlines()
    version = (CHECKOUT / ".python-version").read_text().strip()
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]

    assert lines == ["-r requirements/base.txt"]
    assert project["requires-python"] == f">={version}"


def test_the_readmes_commands_set_what_this_platform_needs(config):
    commands = re.findall(r"^heroku config:set (.*)$", (CHECKOUT / "README.md").read_text(), re.M)
    told = {name for command in commands for name in re.findall(r"\b([A-Z_]+)=", command)}

    assert told == set(config) - OF_THE_PLATFORM - OF_THE_TEST


def test_static_files_are_collected_without_a_setting(slug):
    assert "static files copied" in slug.collected
    assert (slug.app / "staticfiles" / "pages" / "pages.css").exists()


def test_a_notification_sent_on_the_platform_is_delivered(slug, config, platform, push_service):
    settings = {name: value for name, value in config.items() if name != "PORT"}
    channel = json.loads(run(slug, "create_channel", "Shop", "--json", **settings))
    owner = {"Authorization": f"Key {channel['api_key']}"}
    device = push_service.subscribe()

    subscribed = platform.post(
        "/subscribe", headers={"X-Channel-ID": channel["channel_id"]}, json=device.subscription
    )
    assert subscribed.status_code == 201, subscribed.text
    sent = platform.post("/send-notification", headers=owner, json={"body": "It works."}).json()

    def shown():
        return platform.get(f"/notification/{sent['notification_id']}", headers=owner).json()

    eventually(lambda: shown()["status"] == "sent", seconds=120)
    assert (shown()["delivered_count"], shown()["recipient_count"]) == (1, 1)
    (receipt,) = device.receipts
    assert "It works." in str(receipt)


def test_the_proxy_is_trusted_about_https(platform):
    assert "Strict-Transport-Security" in platform.get("/").headers
    assert platform.get("/static/pages/pages.css").status_code == 200


# a self-signed certificate


@pytest.fixture
def redis_client_url(redis_url):
    """`redis_client_url(REDIS_TLS_VERIFY)`: the broker's URL that the settings make of it."""

    def of(verify):
        program = "from pushsvc import settings; print(settings.CELERY_BROKER_URL)"
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=CHECKOUT,
            env={"REDIS_URL": redis_url, **verify},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    return of


def reach_as_limits_do(url):
    with redis.Redis.from_url(url) as client:
        client.ping()


def reach_as_celery_does(url):
    with kombu.Connection(url) as connection:
        connection.ensure_connection(max_retries=1, timeout=10, reraise_as_library_errors=False)
        connection.default_channel.client.ping()


REACH = [reach_as_limits_do, reach_as_celery_does]


@pytest.mark.parametrize("reach", REACH)
def test_redis_with_an_unverified_certificate_is_rejected(redis_client_url, reach):
    with pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        reach(redis_client_url({}))


@pytest.mark.parametrize("reach", REACH)
def test_redis_with_an_unverified_certificate_is_reached_if_the_setting_allows_it(
    redis_client_url, reach
):
    reach(redis_client_url({"REDIS_TLS_VERIFY": "off"}))
