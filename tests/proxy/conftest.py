from contextlib import ExitStack
from functools import cache
from urllib.parse import urlsplit

import pytest

from pushsvc.common.store.redis_client import redis_client
from tests.api.support import owner_of
from tests.factories import make_channel
from tests.pipeline.processes import running_web
from tests.proxy.nginx import HOST, make_certificate, running_nginx

SETTINGS = {"PUBLIC_BASE_URL": f"https://{HOST}", "ALLOWED_HOSTS": f"{HOST},127.0.0.1"}


@pytest.fixture(autouse=True)
def _no_leftovers():
    """Removes limits of other tests."""
    redis_client().flushdb()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls") / "certificate.pem")


@pytest.fixture
def owner(transactional_db):
    return owner_of(make_channel())


@pytest.fixture(scope="module")
def _webs(django_db_setup, tmp_path_factory):
    """`_webs(count)`: the port of a web process that trusts so many proxies, shared by all tests
    of a file."""
    with ExitStack() as stack:

        @cache
        def port(proxies):
            log = tmp_path_factory.mktemp("web") / "log"
            running = running_web(log, TRUSTED_PROXIES=str(proxies), **SETTINGS)
            return urlsplit(stack.enter_context(running)).port

        yield port


@pytest.fixture
def web(_webs, transactional_db):
    """The port of a web process that trusts one proxy."""
    return _webs(1)


@pytest.fixture
def nginx(web, tmp_path, certificate):
    """An nginx in front of it."""
    with running_nginx(tmp_path / "nginx", certificate, web) as running:
        yield running


@pytest.fixture
def two_proxies(_webs, transactional_db, tmp_path, certificate):
    """The outer of two proxies, in front of a web process that trusts both."""
    inner_appends = {"X-Forwarded-For $remote_addr": "X-Forwarded-For $proxy_add_x_forwarded_for"}
    outer_speaks_tls = {
        "proxy_pass http://pushsvc;": "proxy_pass https://pushsvc;"
        f" proxy_ssl_server_name on; proxy_ssl_name {HOST};"
    }
    with (
        running_nginx(tmp_path / "inner", certificate, _webs(2), **inner_appends) as inner,
        running_nginx(tmp_path / "outer", certificate, inner.port, **outer_speaks_tls) as outer,
    ):
        yield outer
