import contextlib
import faulthandler
import os
import random
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox import running_apns_sandbox, running_fcm_sandbox, running_sandbox
from tests.faults import database
from tests.faults.engines.engine import asked
from tests.faults.processes import DELIVERING, HOOKS
from tests.faults.system import System
from tests.pipeline.newsfeeds import running_site
from tests.pipeline.receivers import running_receiver
from tests.plugin import HAS_FAILED

# `make test-engines`, `make test-previous` and `make cluster` run these.
collect_ignore = [
    file
    for file, is_asked in (
        ("engines/test_pgbouncer.py", "pgbouncer" in asked()),
        ("engines/test_standby.py", "standby" in asked()),
        ("test_previous_version.py", "FAULTS_PREVIOUS" in os.environ),
        ("cluster/test_cluster.py", "FAULTS_CLUSTER" in os.environ),
    )
    if not is_asked
]


@pytest.fixture(scope="session")
def _system():
    home = Path(tempfile.mkdtemp(prefix="pushsvc-faults-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        sandboxes = SimpleNamespace(
            web=stack.enter_context(running_sandbox()),
            other_web=stack.enter_context(running_sandbox()),
            fcm=stack.enter_context(running_fcm_sandbox()),
            apns=stack.enter_context(running_apns_sandbox()),
        )
        system = System(home, sandboxes)
        stack.callback(system.stop)
        system.migrate()
        yield system


@pytest.fixture
def seed():
    """The seed of everything that a test leaves to chance. FAULTS_SEED repeats a run."""
    given = os.environ.get("FAULTS_SEED")
    seed = int(given) if given else random.SystemRandom().randrange(2**32)
    print(f"FAULTS_SEED={seed}")  # noqa: T201 (pytest shows it where a test failed)
    return seed


@pytest.fixture
def system(_system, seed, request):
    # The tests' waits have limits of their own. The limit of the run would end it at once, and
    # leave workers and servers behind.
    faulthandler.cancel_dump_traceback_later()
    _system.begin_test(seed)
    yield _system
    _system.end_test(has_failed=request.node.stash.get(HAS_FAILED, True))


@pytest.fixture
def channel(system):
    return system.channel()


@pytest.fixture
def receiver(system):
    """A receiver of webhooks. The worker of webhooks runs as long as it does."""
    with running_receiver(system.receiver_port) as running:
        system.start(HOOKS)
        yield running
        system.kill(HOOKS)


@pytest.fixture
def site(system):
    """A site with a feed. The worker of webhooks checks it."""
    with running_site(port=system.site_port) as running:
        yield running


@pytest.fixture
def gate(system):
    """See `tests.faults.database.gate`."""
    with database.gate(system) as open_to:
        yield open_to


@pytest.fixture
def stopped(system):
    """No delivering worker runs. Workers that the test starts, with waits of its own, end with
    it."""
    yield from _stopped(system, DELIVERING)


@pytest.fixture
def web_stopped(system):
    """The same for the web worker alone."""
    yield from _stopped(system, ["worker-web"])


@pytest.fixture
def web_and_planner_stopped(system):
    yield from _stopped(system, ["worker-web", "worker-plan"])


def _stopped(system, names):
    assert set(system.tell_to_stop(*names)) == {0}
    yield system
    system.kill(*names)
