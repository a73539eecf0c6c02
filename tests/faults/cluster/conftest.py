import contextlib
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox import running_apns_sandbox, running_fcm_sandbox, running_sandbox
from tests.faults.cluster import network
from tests.faults.cluster.system import Cluster, make_network


@pytest.fixture(scope="session")
def _system():
    home = Path(tempfile.mkdtemp(prefix="pushsvc-cluster-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        hosts = make_network()
        stack.callback(hosts.close)
        address = network.GATEWAY
        sandboxes = SimpleNamespace(
            web=stack.enter_context(running_sandbox(host=address)),
            other_web=stack.enter_context(running_sandbox(host=address)),
            fcm=stack.enter_context(running_fcm_sandbox(host=address)),
            apns=stack.enter_context(running_apns_sandbox(host=address)),
        )
        system = Cluster(home, sandboxes, hosts)
        stack.callback(system.stop)
        system.migrate()
        yield system
