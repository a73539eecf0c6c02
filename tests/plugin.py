"""Starts a PostgreSQL and a Redis for the run before Django's settings are read.

Named in pyproject.toml's addopts, so that `pytest` works by itself. If DATABASE_URL or REDIS_URL is
set, that server is used instead. The role of DATABASE_URL must be a superuser of PostgreSQL. `make
test` runs files in parallel (`pytest -n logical`): each of pytest's processes then has its own
database in PostgreSQL, and its own Redis, because tests count a server's commands and connections.
"""

import fcntl
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography.fernet import Fernet
from xdist.scheduler import LoadScopeScheduling

from local import embedded
from tests import forked, leftovers, missing
from tests.nursery import GARBAGE
from tests.unmeasured import unmeasured

pytest_plugins = ["tests.quick"]

_REDIS_DATABASES = 16  # Redis's default
_HOME = pytest.StashKey[tuple[Path, embedded.Servers]]()
HAS_FAILED = pytest.StashKey[bool]()  # whether any part of the test has

ENVIRONMENT = {
    "SECRET_KEY": "only-for-tests-" + "0123456789" * 4,
    "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
    "ALLOWED_HOSTS": "testserver,localhost,127.0.0.1",
    "VAPID_SUBJECT": "mailto:push@example.com",
}
# No test calls a server with a certificate of a public authority, and each TLS context would read
# all public authorities, which takes 20 ms. It reads this one, whose key does not exist any more.
_AUTHORITY = Path(__file__).parent / "authority.pem"
_GIVEN_AUTHORITIES = "TESTS_GIVEN_SSL_CERT_FILE"
# One service or one browser runs for all tests of a folder. The fault tests are two groups, so that
# they run in parallel.
TOGETHER = (
    "tests/faults/test_worker_faults.py",
    "tests/faults/",
    "tests/browser/console/",
    "tests/browser/sdk/",
    "tests/browser/firefox/",
)
# Long tests begin first, the longest at the head, so that no single one of them is left at the end.
LONG = (
    "tests/faults/",
    "tests/browser/console/",
    "tests/ops/test_run.py",
    "tests/isolation/test_console.py",
    "tests/clients/",
    "tests/ops/test_bench.py",
    "tests/ops/test_buildpack.py",
    "tests/browser/sdk/",
    "tests/browser/firefox/",
    "tests/api/test_connections.py",
    "tests/proxy/",
    "tests/pipeline/test_model.py",
    "tests/pipeline/test_breaker_isolation.py",
    "tests/admin/attacks/",
    "tests/fuzz/",
    "tests/isolation/",
    "tests/ops/",
    "tests/api/test_schema.py",
    "tests/admin/console/",
    "tests/delivery/",
    "tests/sandbox/",
    "tests/pipeline/",
)
# These make thousands of requests or calls of the same kinds, which others make once, or they judge
# other processes.
UNMEASURED = (
    "tests/admin/attacks/test_html.py",
    "tests/admin/attacks/test_requests.py",
    "tests/admin/attacks/test_tenancy.py",
    "tests/api/test_schema.py",
    "tests/browser/",
    "tests/budget/",
    "tests/clients/",
    "tests/faults/",
    "tests/fuzz/",
    "tests/isolation/test_api.py",
    "tests/isolation/test_console.py",
    "tests/pipeline/test_breaker_isolation.py",
    "tests/pipeline/test_limited.py",
    "tests/pipeline/test_model.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # So that the run stops its servers even if it is terminated.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("SIGTERM", returncode=143))
    _write_bytecode()
    gc.set_threshold(*GARBAGE)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault(_GIVEN_AUTHORITIES, os.environ.get("SSL_CERT_FILE", ""))
    os.environ["SSL_CERT_FILE"] = str(_AUTHORITY)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if worker and embedded.is_given("REDIS_URL"):
        redis = urlsplit(os.environ["REDIS_URL"])
        os.environ["REDIS_URL"] = redis._replace(path=f"/{worker}").geturl()
    only_has_workers = not worker and bool(early_config.known_args_namespace.numprocesses)
    if (
        not only_has_workers
    ):  # processes that run tests are measured, but not those that tests start and kill
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    _start_servers(early_config, with_redis=not only_has_workers)
    if only_has_workers:
        forked.share_nursery(early_config.stash[_HOME][0])


def environment_for_downloads() -> dict[str, str]:
    """The environment for a program that calls public servers, with the authorities that were set
    before this run."""
    others = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
    given = os.environ[_GIVEN_AUTHORITIES]
    return others | ({"SSL_CERT_FILE": given} if given else {})


def _write_bytecode() -> None:
    """Allows bytecode files. Otherwise each of the hundreds of processes that tests start compiles
    all modules, and each of pytest's processes rewrites all assertions, in every run."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def _start_servers(early_config: pytest.Config, *, with_redis: bool) -> None:
    home = Path(tempfile.mkdtemp(prefix="pushsvc-tests-"))
    leftovers.end_home_with_us(home)
    servers = embedded.start(
        home,
        postgres=not embedded.is_given("DATABASE_URL"),
        redis=with_redis and not embedded.is_given("REDIS_URL"),
        durable=False,
    )
    os.environ.update(servers.environment)
    if "DATABASE_URL" in servers.environment:
        # The service's default is 3 seconds. Many connections at once on a busy machine take
        # longer, and would be answered with 503.
        os.environ["DATABASE_URL"] += "?connect_timeout=60"
    early_config.stash[_HOME] = (home, servers)


def pytest_unconfigure(config: pytest.Config) -> None:
    # After pytest's closing line, which others read.
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    words = missing.summary(reporter.stats.get("skipped", [])) if reporter else ""
    if words:
        reporter.write_line(words)
    if _HOME in config.stash:
        home, servers = config.stash[_HOME]
        servers.stop()
        shutil.rmtree(home, ignore_errors=True)


# Running in parallel


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers() -> int:
    """The number for `-n logical`: three more than the processors, because some tests wait. More do
    not help: five keep two processors 98 % busy, and each takes 4.5 seconds of processor time to
    collect the tests. Each can have its own database of a given Redis."""
    return min(len(os.sched_getaffinity(0)) + 3, _REDIS_DATABASES)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    return _ByFile(config, log)


class _ByFile(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        folders = (folder for folder in TOGETHER if nodeid.startswith(folder))
        return next(folders, nodeid.partition("::")[0])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Lets the first of pytest's processes collect alone. In a fresh clone it rewrites all
    assertions, and the others read the result."""
    with _opened(Path(__file__).parent) as folder:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(folder, fcntl.LOCK_SH)
        with unmeasured():
            result = yield
    # Modules and tests are kept until the end, so the garbage collector need not visit them.
    gc.collect()
    gc.freeze()
    return result


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with unmeasured() if item.nodeid.startswith(UNMEASURED) else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test that passed has logged is shown nowhere, and need not go to the process that
    prints."""
    report = yield
    item.stash[HAS_FAILED] = report.failed or item.stash.get(HAS_FAILED, False)
    if not item.stash[HAS_FAILED]:
        report.sections.clear()
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> tuple[int, bool]:
    rank = next((n for n, path in enumerate(LONG) if item.nodeid.startswith(path)), len(LONG))
    return rank, item.get_closest_marker("last") is not None
