"""A whole pushsvc of the suite's own: PostgreSQL, Redis, sandboxes, and the Procfile's processes.

The test's process serves the sandboxes, so it sees what devices received. Everything else is a
separate process, started as in production, and may be killed, paused or told to stop.
"""

import json
import os
import random
import shlex
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg
import redis
from cryptography.fernet import Fernet

from bench.ports import own_port
from local.supervisor.http import Origin
from tests import forked, leftovers
from tests.faults import broker
from tests.faults import settings as shortened
from tests.faults.channels import Channel
from tests.faults.engines.engine import Engine
from tests.faults.processes import CONCURRENCY, EVERYTHING, PLATFORMS, Processes, until
from tests.faults.scale import patience

_CHANNELS_AT_ONCE = 60
_TOO_LONG = 50.0


class System(Processes):
    def __init__(self, home, sandboxes):
        self.home = home
        self.sandboxes = sandboxes
        leftovers.end_home_with_us(home)
        self.engine = self._make_engine(home)
        self.port = own_port()
        self.receiver_port = own_port()
        self.site_port = own_port()
        url = f"http://127.0.0.1:{self.port}"
        service = Origin("127.0.0.1", self.port, url, seconds=_TOO_LONG)
        super().__init__(home, self._environment(), service)
        self.random = random.Random()  # noqa: S311 (chance, to be had again)
        self._database = None
        self._database_lock = threading.Lock()  # threads of a test share the connection
        self._database_name = ""  # as the engine has it
        self._channels = []
        self.redis: Any = redis.Redis.from_url(self.environment["REDIS_URL"], decode_responses=True)

    def _make_engine(self, home):
        return Engine(home)

    # A test

    def begin_test(self, seed):
        """All processes run, and nothing of earlier tests is left."""
        self.random.seed(seed)
        self.begin_log()
        self.engine.revive()
        # A wakeup carries the time limit of the planner that sent it, which a test may have set.
        broker.purge(self, *broker.QUEUES)
        until(self.is_whole, "the service is up, and beat ticks")
        until(self.do_workers_hear, "the workers hear")
        self.rows("DELETE FROM django_celery_beat_periodictask WHERE name LIKE 'faults%'")
        for key in self.redis.scan_iter("pushsvc:breaker:*"):
            self.redis.delete(key)

    def is_whole(self):
        """Whether all processes run. Starts those that do not, as a supervisor does: beat ends if
        the database ends its first query."""
        self.run_all()
        return self.is_up() and self.do_beats_tick()

    def end_test(self, *, has_failed):
        """Shows the processes' latest output if the test failed."""
        for name in EVERYTHING:
            self.wake(name)
        self.signal_brokers(signal.SIGCONT)
        if has_failed:
            print("\n".join(self.logged("")[-60:]))  # noqa: T201 (for who reads why)

    def channel(self):
        """A new channel with a key that has all scopes."""
        if not self._channels:
            self._channels = json.loads(self._command("make_channels", _CHANNELS_AT_ONCE))
        return Channel(self, **self._channels.pop())

    # Servers

    def restart_postgres(self, how=signal.SIGINT):
        """SIGINT ends sessions and writes a checkpoint; SIGQUIT is a crash with recovery."""
        server = self.engine.postgres
        server.stop_signals = (how, signal.SIGQUIT)
        server.stop(seconds=20)
        self.engine.revive()

    def use_database(self, name):
        """From now on, for this object and for processes that are started."""
        self._database_name = name
        self.environment["DATABASE_URL"] = _with_path(self.environment["DATABASE_URL"], name)
        self._database.close()
        self._database = None

    @property
    def _database_url(self):
        """Of PostgreSQL itself, whatever is in front of it."""
        url = self.engine.database_url
        return _with_path(url, self._database_name) if self._database_name else url

    def stop_postgres(self):
        self.engine.postgres.stop(seconds=20)

    def kill_brokers(self):
        """Redis comes back empty, and another broker with what it stored."""
        for server in self.engine.brokers:
            self.engine.kill(server)

    def signal_brokers(self, number):
        for server in self.engine.brokers:
            server._record.signal(number)

    def revive_servers(self):
        self.engine.revive()

    def rows(self, statement, parameters=None):
        """The rows of one committed statement. It is repeated while the database is away."""
        end = time.monotonic() + patience(_TOO_LONG)
        while True:
            try:
                with self._database_lock:
                    return self._rows(statement, parameters)
            except psycopg.OperationalError:
                assert time.monotonic() < end, "the database stays away"
                time.sleep(0.05)

    def _rows(self, statement, parameters):
        try:
            if self._database is None:
                url = self._database_url
                self._database = psycopg.connect(url, autocommit=True, connect_timeout=3)
            found = self._database.execute(statement, parameters)
            return found.fetchall() if found.description else []
        except psycopg.OperationalError:
            if self._database is not None:
                self._database.close()
                self._database = None
            raise

    def value(self, statement, parameters=None):
        return self.rows(statement, parameters)[0][0]

    def connect(self):
        """A database connection of the test's own."""
        return psycopg.connect(self._database_url, connect_timeout=30)

    def end_leases(self, *platforms):
        """Ends the leases of dead workers, as if their time had passed. All workers of the
        platform must be dead: a live one uses its own clock, which no test moves."""
        for platform in platforms:
            assert not self.alive(f"worker-{platform}")
        self.rows(
            "UPDATE notifications_app_batch SET lease_until = now() - '1 s'::interval"
            " WHERE status = 'leased' AND platform = ANY(%s)",
            [list(platforms)],
        )

    def end_plan_leases(self):
        """The same for planners."""
        assert not self.alive("worker-plan")
        self.rows(
            "UPDATE notifications_app_plan SET lease_until = now() - '1 s'::interval"
            " WHERE status = 'planning' AND lease_until IS NOT NULL"
        )

    # Start and end

    def migrate(self):
        self._command("migrate")

    def stop(self):
        self.end_all()
        if self._database is not None:
            self._database.close()
        self.redis.close()
        self.engine.stop()

    def do_workers_hear(self):
        """Each worker has reported itself in Redis since it was started."""
        return all(
            any(
                float(said.partition(":")[0]) > self._started_at[f"worker-{queue}"]
                for said in self.redis.hgetall(f"pushsvc:workers:{queue}").values()
            )
            for queue in ("plan", *PLATFORMS)
        )

    def are_sandboxes_left(self, *platforms):
        """Whether all connections to these platforms' sandboxes have ended: then the last requests
        of dead workers have been read."""
        boxes = self.sandboxes
        addresses = {
            "web": [boxes.web.origin, boxes.other_web.origin],
            "android": [boxes.fcm.origin],
            "ios": [boxes.apns.server],
        }
        found = [address for platform in platforms for address in addresses[platform]]
        ports = {int(address.rpartition(":")[2]) for address in found}
        ours = psutil.Process().net_connections("tcp")
        return not any(c.laddr.port in ports and c.status != psutil.CONN_LISTEN for c in ours)

    def do_beats_tick(self):
        """Each beat has connected to the broker, as it does to send its first tick."""
        try:
            return all(self._is_connected_to_broker(beat.pid) for beat in self.alive("beat"))
        except psutil.NoSuchProcess:  # it has just ended
            return False

    def _is_connected_to_broker(self, pid):
        port = self.engine.broker.port
        connections = psutil.Process(pid).net_connections("tcp")
        return any(each.raddr and each.raddr.port == port for each in connections)

    def _command(self, *arguments):
        """The last line that `tests.faults.commands` wrote, run over this system's database."""
        words = shlex.join(["python", "-m", "tests.faults.commands", *map(str, arguments)])
        code, said = forked.run(words, self.environment, timeout=patience(3 * _TOO_LONG))
        assert code == 0, said
        return said.rpartition("\n")[2]

    def _environment(self):
        sandboxes = self.sandboxes
        urls = self.engine.environment
        database = urls["DATABASE_URL"]
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
            **urls,
            # A busy machine may take longer than the service's 3 seconds.
            "DATABASE_URL": f"{database}{'&' if '?' in database else '?'}connect_timeout=30",
            "WEB_WAIT_SECONDS": "600",
            "SECRET_KEY": "only-for-tests-" + "0123456789" * 4,
            "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
            "ALLOWED_HOSTS": "127.0.0.1",
            "VAPID_SUBJECT": "mailto:push@example.com",
            "PYTHONTZPATH": str(self.home / "zones"),  # before those of the package tzdata
            "PORT": str(self.port),
            "GRANIAN_HOST": "127.0.0.1",
            "WORKER_CONCURRENCY": str(CONCURRENCY),
            "WEBPUSH_TRUSTED_ORIGINS": f"{sandboxes.web.origin},{sandboxes.other_web.origin}",
            "WEBHOOK_TRUSTED_ORIGINS": f"http://127.0.0.1:{self.receiver_port}",
            "NEWSFEED_TRUSTED_ORIGINS": f"http://127.0.0.1:{self.site_port}",
            "FCM_API_BASE": sandboxes.fcm.origin,
            "GOOGLE_TOKEN_URI": sandboxes.fcm.token_uri,
            "APNS_SERVER": sandboxes.apns.server,
            "PROVIDER_CA_FILE": str(sandboxes.apns.ca_file),
            "SSL_CERT_FILE": os.environ["SSL_CERT_FILE"],  # of tests/plugin.py
        }


def _with_path(url, name):
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def most_repeats(kills):
    """How many messages may be sent again when a worker's processes die: those in flight or with
    unwritten outcomes."""
    return kills * CONCURRENCY * shortened.UNWRITTEN_OUTCOMES
