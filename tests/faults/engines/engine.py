"""The servers that the fault suite's processes use.

They are those of the wheels, PostgreSQL 18 and Redis 6.2, unless FAULTS_ENGINE names others:
`FAULTS_ENGINE=rabbitmq`, or several, separated by commas. `make test-engines` tries each.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from local import embedded
from local.embedded.postgres import Postgres
from local.embedded.processes import ProcessRecord, wait_ended
from local.embedded.redis import Redis
from tests.faults.engines import servers


class Engine:
    """`postgres` is PostgreSQL itself, whatever the processes connect to. `brokers` are the servers
    that hold wakeups and limits."""

    def __init__(self, home):
        self._home = embedded.Home(home)
        self.postgres = self.make(Postgres)
        self.redis = self.make(Redis)
        self.standby = None
        self.others = {}
        for name in asked():
            ENGINES[name].change(self)
        own = {"POSTGRES_URL": self.postgres, "REDIS_URL": self.redis}
        self._servers = embedded.start_all(self._home, own | self.others)
        if self.standby:
            self.postgres.await_follower()

    def make(self, kind, *, durable=False, **options):
        return kind(self._home, durable=durable, say=embedded.to_stderr, **options)

    @property
    def environment(self):
        return {"DATABASE_URL": self._database_url()} | self._servers.environment

    @property
    def database_url(self):
        """For the test itself, which is not to wait in a pool."""
        return self._database_url() if self.standby else self.postgres.url

    def _database_url(self):
        if not self.standby:
            return self.postgres.url
        address = f"127.0.0.1:{self.postgres.port}"
        both = self.postgres.url.replace(address, f"{address},127.0.0.1:{self.standby.port}")
        return f"{both}?target_session_attrs=read-write"

    @property
    def broker(self):
        return self.others.get("CELERY_BROKER_URL", self.redis)

    @property
    def brokers(self):
        return {self.redis, self.broker}

    def kill(self, server):
        """SIGKILL to the server's processes, as if its machine were lost."""
        leader = psutil.Process(server._record.pid)
        processes = [leader, *leader.children(recursive=True)]
        records = [ProcessRecord.of(each.pid) for each in processes]
        for record in records:
            record.signal(signal.SIGKILL)
        assert wait_ended(records, seconds=20.0) == []

    def fail_over(self):
        """The primary's machine is lost, and what it wrote in its last second has not left it. The
        standby takes its place."""
        lost, promoted = self.postgres, self.standby
        lost.stop_passing_on()
        time.sleep(1.0)
        self.kill(lost)
        promoted.promote()
        self.postgres, self.standby = promoted, lost

    def rejoin(self):
        """The lost server comes back as standby of the other."""
        self.standby.follow(self.postgres)
        self.revive()
        self.postgres.await_follower()

    def revive(self):
        self._servers.revive()

    def stop(self):
        self._servers.stop()


def asked():
    return os.environ.get("FAULTS_ENGINE", "").replace(",", " ").split()


@dataclass(frozen=True)
class Change:
    """What differs from the wheels. `programs` are those of the Debian package `package`.
    `versions`: commands that print what is tried."""

    change: Callable[[Engine], None]
    versions: tuple[str, ...]
    programs: tuple[Path, ...] = ()
    package: str = ""

    def lack(self):
        """What is missing, and how to install it; "" if nothing is."""
        missing = [str(program) for program in self.programs if not os.access(program, os.X_OK)]
        return f"{missing[0]} is missing (apt-get install {self.package})" if missing else ""


def _none(_engine):
    pass


def _postgresql_15(engine):
    engine.postgres = engine.make(servers.Postgres15)


def _redis_7(engine):
    engine.redis = engine.make(servers.Redis7)


def _pgbouncer(engine):
    engine.others["DATABASE_URL"] = engine.make(servers.PgBouncer, postgres=engine.postgres)


def _rabbitmq(engine):
    epmd = engine.make(servers.Epmd)
    engine.others |= {
        "EPMD_URL": epmd,
        "CELERY_BROKER_URL": engine.make(servers.RabbitMQ, epmd=epmd),
    }


def _standby(engine):
    engine.postgres = engine.make(servers.Node)
    engine.standby = engine.others["STANDBY_URL"] = engine.make(servers.Standby)
    engine.standby.leader = engine.postgres


ENGINES = {
    "wheels": Change(_none, (f"{servers.POSTGRES_18} -V", f"{servers.REDIS_6} -v")),
    "postgresql-15": Change(
        _postgresql_15,
        (f"{servers.POSTGRES_15}/postgres -V",),
        (servers.POSTGRES_15 / "postgres",),
        "postgresql-15",
    ),
    "redis-7": Change(_redis_7, (f"{servers.REDIS_7} -v",), (servers.REDIS_7,), "redis-server"),
    "pgbouncer": Change(
        _pgbouncer, (f"{servers.PGBOUNCER} -V",), (servers.PGBOUNCER,), "pgbouncer"
    ),
    "rabbitmq": Change(
        _rabbitmq,
        ("dpkg-query -W rabbitmq-server",),
        (servers.RABBITMQ, servers.EPMD),
        "rabbitmq-server",
    ),
    "standby": Change(_standby, (f"{servers.POSTGRES_18} -V",)),
}
