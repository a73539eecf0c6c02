"""What messages cost with one, two and four worker hosts, and how many PostgreSQL can take.

Seconds say little where the hosts share a machine's cores. So it prints processor time for each
part: if a message costs the same with any number of hosts, hosts with cores of their own multiply
the rate. What the parts use while nothing is sent, for ticks mostly, is left out. Every second
round has the opposite order, because PostgreSQL writes more after a checkpoint.
"""

import argparse
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

from bench.meter import tree_cpu
from bench.sink import find_nginx, running_sink
from bench.work import make_work
from tests.faults.cluster import network
from tests.faults.cluster.system import HOSTS, WORKERS, Cluster, make_network
from tests.faults.processes import until

_COUNTS = (1, 2, 4)
_FEW = 400
_HEAD = """\
worker   messages   CPU-s for 1,000 messages                WAL       messages / s that a core
hosts    a second   workers  PostgreSQL  planners  Redis    a message   of PostgreSQL can take"""
_LINE = "{:<6}  {:>9,.0f}  {:>8.3f}  {:>10.3f}  {:>8.3f}  {:>5.3f}  {:>5,.0f} bytes  {:>22,.0f}"
_REST_SECONDS = 10.0
_LOOK_SECONDS = 0.25  # seldom, because a look costs PostgreSQL time, too


class _Device:
    """As the channel writes its row."""

    def __init__(self, made):
        self.endpoint, self.p256dh, self.auth = made["endpoint"], made["p256dh"], made["auth"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="make cluster")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="pushsvc-cluster-"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        hosts = make_network()
        stack.callback(hosts.close)
        sink = stack.enter_context(running_sink(find_nginx(), host=network.GATEWAY))
        cluster = _production(home, hosts, sink)
        stack.callback(cluster.stop)
        cluster.migrate()
        few = _channel(cluster, home, sink, _FEW)
        many = _channel(cluster, home, sink, options.messages)
        _say(_HEAD)
        for number in range(options.rounds):
            for count in _COUNTS[:: -1 if number % 2 else 1]:
                _use(cluster, count)
                _send(few)  # connections are made, statements prepared
                rest = _at_rest(cluster)
                before = _Spent(cluster)
                with sink.expecting(options.messages):
                    _send(many)
                _say(_line(count, options.messages, _Spent(cluster).since(before), rest))


def _channel(cluster, home, sink, count):
    browsers = make_work(home, sink, count).content["web"]
    channel = cluster.channel()
    channel.add([_Device(each) for each in browsers], push_service=sink.origin[8:])
    return channel


def _production(home, hosts, sink):
    """With the settings of production, on a PostgreSQL that writes to its disk, and only for
    browsers."""
    nowhere = SimpleNamespace(origin="", token_uri="", server="", ca_file="")
    cluster = Cluster(
        home,
        SimpleNamespace(web=sink, other_web=sink, fcm=nowhere, apns=nowhere),
        hosts,
        durable=True,
    )
    for name in ("FCM_API_BASE", "GOOGLE_TOKEN_URI", "APNS_SERVER"):
        del cluster.environment[name]
    cluster.environment |= {
        "DJANGO_SETTINGS_MODULE": "pushsvc.settings",
        "PROVIDER_CA_FILE": str(sink.authority),
    }
    return cluster


def _use(cluster, count):
    """Only so many hosts have workers."""
    cluster.idle = {
        (host, name)
        for host, names in HOSTS.items()
        for name in names
        if name in ("worker-android", "worker-ios") or host in WORKERS[count:]
    }
    cluster.tell_to_stop("worker-web")
    cluster.run_all()
    until(cluster.is_up, "the service is up")
    until(cluster.do_workers_hear, "the workers hear")


def _send(channel):
    notification = channel.send()
    while channel.read(notification)["status"] != "sent":
        time.sleep(_LOOK_SECONDS)


class _Spent:
    """Processor time and WAL so far."""

    def __init__(self, cluster):
        self._at = time.monotonic()
        self._wal = cluster.value("SELECT pg_current_wal_lsn() - '0/0'")
        self._cpu = [
            _cpu(process.pid for process in cluster.alive("worker-web")),
            _cpu([cluster.engine.postgres._record.pid]),
            _cpu(process.pid for process in cluster.alive("worker-plan")),
            _cpu([cluster.engine.redis._record.pid]),
        ]

    def since(self, before):
        """(seconds, bytes of WAL, [CPU-s of each part])"""
        cpu = [now - then for now, then in zip(self._cpu, before._cpu, strict=True)]
        return self._at - before._at, float(self._wal - before._wal), cpu


def _at_rest(cluster):
    """CPU-s of each part in a second in which nothing is sent."""
    before = _Spent(cluster)
    time.sleep(_REST_SECONDS)
    seconds, _, cpu = _Spent(cluster).since(before)
    return [each / seconds for each in cpu]


def _line(count, messages, spent, rest):
    """As the head says."""
    seconds, wal, cpu = spent
    own = [1000 * (each - idle * seconds) / messages for each, idle in zip(cpu, rest, strict=True)]
    return _LINE.format(count, messages / seconds, *own, wal / messages, 1000 / own[1])


def _cpu(pids):
    return sum(tree_cpu(pid) for pid in pids)


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
