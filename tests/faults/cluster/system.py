"""pushsvc on several machines: each process of the suite's system is on a host of its own network.

The push services and the test are on the machine itself, which is the network's gateway.
"""

import functools
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from local.embedded.postgres import Postgres
from local.embedded.redis import Redis
from local.embedded.server import EmbeddedServer
from local.supervisor.http import Origin, UnreachableError
from tests import forked, leftovers
from tests.faults.cluster.network import SUBNET, Network
from tests.faults.engines.engine import Engine
from tests.faults.processes import EVERYTHING
from tests.faults.system import System

WEBS = ("web1", "web2")
PLANNERS = ("plan1", "plan2")
WORKERS = ("w1", "w2", "w3", "w4")
HOSTS = {
    **dict.fromkeys(WEBS, ("web",)),
    **dict.fromkeys(PLANNERS, ("worker-plan", "beat")),
    "w1": ("worker-web", "worker-android"),
    "w2": ("worker-web", "worker-ios"),
    "w3": ("worker-web", "worker-android"),
    "w4": ("worker-web", "worker-ios"),
}
SERVERS = ("postgres", "redis")
_SHIFT = Path(__file__).with_name("shift.c")
_PORT = 8000
_LAST_SECONDS = 0.2  # less than processes wait for Redis before they close the connection


class _OnHost(EmbeddedServer):
    """A server on a host of the network, and on that host's loopback."""

    def __init__(self, *arguments, host, **options):
        super().__init__(*arguments, **options)
        self._host = host

    @property
    def url(self):
        own = super().url  # type: ignore[safe-super]  # that of the server proper
        return own.replace("127.0.0.1", self._host.address)

    def start(self):
        self._host.run(super().start)


class PostgresOnHost(_OnHost, Postgres):
    def _initdb(self, target, password_file):
        super()._initdb(target, password_file)
        with (target / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {SUBNET} scram-sha-256\n")

    def _command(self):
        words, given = super()._command()
        return [word.replace("=127.0.0.1", "=*") for word in words], given


class RedisOnHost(_OnHost, Redis):
    """It looks every few seconds whether a machine that says nothing is still there."""

    def _command(self):
        words, configuration = super()._command()
        own = f"bind 127.0.0.1 {self._host.address}\ntcp-keepalive 5".encode()
        return words, configuration.replace(b"bind 127.0.0.1", own)


class _ClusterEngine(Engine):
    def __init__(self, home, hosts, *, durable):
        self._hosts = hosts
        self._durable = durable
        super().__init__(home)

    def make(self, kind, **options):
        on_host = {Postgres: PostgresOnHost, Redis: RedisOnHost}[kind]
        options |= {"host": self._hosts[on_host.name], "durable": self._durable}
        return super().make(on_host, **options)


class _Webs:
    """What a proxy is to clients: it asks the web hosts in turn, and the next if one is away."""

    def __init__(self, hosts):
        self.origins = [
            Origin(host.address, _PORT, f"http://{host.address}:{_PORT}") for host in hosts
        ]

    def request(self, *arguments):
        self.origins.append(self.origins.pop(0))
        first, second = self.origins
        try:
            return first.request(*arguments)
        except UnreachableError:
            return second.request(*arguments)


class Cluster(System):
    """`shifts`: how many seconds the clocks of hosts are ahead, for processes that start from now
    on. `idle`: (host, process name) of what `run_all` does not start. `durable`: PostgreSQL and
    Redis write to their disks."""

    def __init__(self, home, sandboxes, network, *, durable=False):
        self.hosts = network.hosts
        self._durable = durable
        self.shifts = {}
        self.idle = set()
        self._on: dict[tuple[str, str], Any] = {
            (host, name): None for host, names in HOSTS.items() for name in names
        }
        self._began = {}
        super().__init__(home, sandboxes)
        self.service = _Webs([self.hosts[name] for name in WEBS])

    def _make_engine(self, home):
        return _ClusterEngine(home, self.hosts, durable=self._durable)

    def _environment(self):
        return super()._environment() | {
            "GRANIAN_HOST": "0.0.0.0",  # noqa: S104 (of its own network)
            "PORT": str(_PORT),
            "ALLOWED_HOSTS": ",".join(self.hosts[name].address for name in WEBS),
        }

    # Processes

    def run_all(self):
        for host, name in self._on:
            if (host, name) not in self.idle and not self._is_alive(host, name):
                self._on[host, name] = self.hosts[host].run(self._start, host, name)

    def _is_alive(self, host, name):
        process = self._on[host, name]
        return process is not None and process.poll() is None

    def _start(self, host, name):
        words = ["/bin/sh", "-c", f"exec {forked.procfile()[name]}"]
        environment = self.environment | self._clock(host)
        process = subprocess.Popen(
            words,
            cwd=forked.CHECKOUT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        leftovers.end_group_with_us(process.pid)
        self._running[name].append(process)
        self._began[host, name] = time.time()
        return process

    def _clock(self, host):
        if host not in self.shifts:
            return {}
        return {"LD_PRELOAD": str(self._library), "CLOCK_SHIFT": str(self.shifts[host])}

    @functools.cached_property
    def _library(self):
        """`shift.c`, compiled."""
        library = self.home / "shift.so"
        compiler = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(_SHIFT)]
        subprocess.run(compiler, check=True)
        return library

    def kill_host(self, host):
        """SIGKILL to the host's processes. Its kernel goes on, and ends their connections."""
        for name in HOSTS[host]:
            if self._is_alive(host, name):
                self.unclean_ends.append(name)
                self._signal(self._on[host, name], signal.SIGKILL)
                self._on[host, name].wait()

    def vanish(self, host):
        """The machine is gone with all that it had, while answers of Redis were on their way to it.
        `heal` and `run_all` bring a new one."""
        with self.hosts["redis"].losing_frames_to(self.hosts[host]):
            time.sleep(_LAST_SECONDS)
            self.hosts[host].vanish()
        self.kill_host(host)

    def stop_all(self):
        """SIGTERM to every process, as at a deploy."""
        assert set(self.tell_to_stop(*EVERYTHING)) <= {0}

    def begun_by(self, host):
        """Ids of the processes on the host that have a connection to Redis."""
        clients = [each for each in self.redis.client_list() if each["name"].startswith("pushsvc:")]
        own = f"{self.hosts[host].address}:"
        return {UUID(each["name"][8:]) for each in clients if each["addr"].startswith(own)}

    # A test

    def is_up(self):
        """Both of them."""
        try:
            replies = [each.request("GET", "/readyz") for each in self.service.origins]
        except UnreachableError:
            return False
        return all(reply.status == 200 for reply in replies)

    def do_beats_tick(self):
        """A tick ran. The connections of processes in other network namespaces cannot be seen."""
        return bool(self.redis.exists("pushsvc:ticked"))

    def do_workers_hear(self):
        """Each worker has reported itself in Redis since it was started."""
        for host, name in self._on:
            kind = name.removeprefix("worker-")
            if kind == name or (host, name) in self.idle:
                continue
            said = self.redis.hget(f"pushsvc:workers:{kind}", f"{kind}@{host}") or "0:"
            if float(said.partition(":")[0]) < self._began[host, name]:
                return False
        return True

    def end_test(self, *, has_failed):
        for host in self.hosts.values():
            host.heal()
        super().end_test(has_failed=has_failed)


def make_network():
    return Network([*SERVERS, *HOSTS])


def lack():
    """What is missing for clocks that differ; "" if nothing is."""
    return "" if shutil.which("cc") else "cc is missing (apt-get install gcc libc6-dev)"
