"""Machines on one wire: network namespaces with addresses of their own, joined by a bridge.

`tests.leftovers` removes them if the run does not. Only one run has them at a time.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests import leftovers

GATEWAY = "10.213.7.1"  # of the machine itself: the push services and the test
SUBNET = "10.213.7.0/24"
_ADDRESS = "10.213.7.{}"
_NAMESPACE = "pushsvc-{}"
_LINK = "pushc-{}"  # at most 15 characters
_BRIDGE = _LINK.format("bridge")
_TUN = Path("/dev/net/tun")
_LOCK = Path("/run/pushsvc-cluster.lock")
_CLONE_NEWUTS, _CLONE_NEWNET = 0x04000000, 0x40000000  # unshare(2)
_libc = ctypes.CDLL(None, use_errno=True)


def lack():
    """Why there can be no such network here; "" if there can."""
    if os.geteuid() != 0:
        return "it needs root, to make network namespaces"
    if not _TUN.exists():
        return f"there is no {_TUN}, which slow links need"
    if not shutil.which("ip"):
        return "ip is missing (apt-get install iproute2)"
    try:
        lock = _locked()
    except BlockingIOError:
        return "another one runs"
    with lock:
        remove()  # what a killed run left
        try:
            _ip("link", "add", _BRIDGE, "type", "bridge")
        except subprocess.CalledProcessError:
            return "the kernel makes no bridge"
        finally:
            remove()
    return ""


def remove():
    """Removes what is there of such a network. Its processes run on without one."""
    for line in _ip("netns", "list").splitlines():
        name = line.split()[0]
        if name.startswith(_NAMESPACE.format("")):
            _ip("netns", "delete", name)
    for line in _ip("-o", "link").splitlines():
        name = line.split(":")[1].strip().partition("@")[0]
        if name.startswith(_LINK.format("")):
            with contextlib.suppress(subprocess.CalledProcessError):  # gone with its peer
                _ip("link", "delete", name)


class Network:
    def __init__(self, names):
        self._lock = _locked()
        remove()
        leftovers.end_network_with_us()
        _ip("link", "add", _BRIDGE, "type", "bridge")
        _ip("address", "add", f"{GATEWAY}/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        self.hosts = {name: Host(name, number) for number, name in enumerate(names, 10)}

    def close(self):
        for host in self.hosts.values():
            host.close()
        remove()
        self._lock.close()


class Host:
    """One machine. Its link can be cut, slow or whole."""

    def __init__(self, name, number):
        self.name = name
        self.address = _ADDRESS.format(number)
        self._namespace = _NAMESPACE.format(name)
        self._link = _LINK.format(name)
        self._wire = None
        self._is_there = False
        self.heal()

    def _appear(self):
        self._is_there = True
        _ip("netns", "add", self._namespace)
        inner = ("type", "veth", "peer", "name", "eth0", "netns", self._namespace)
        _ip("link", "add", self._link, *inner)
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{self.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            _ip("-n", self._namespace, *words)
        _ip("link", "set", self._link, "up")

    def vanish(self):
        """Nothing leaves the machine any more, not even the end of a connection."""
        self._is_there = False
        _ip("link", "delete", self._link)
        _ip("netns", "delete", self._namespace)

    @contextlib.contextmanager
    def losing_frames_to(self, other):
        """In the block, what this machine sends to the other gets lost."""
        entry = (other.address, "lladdr", "02:00:00:00:00:00", "dev", "eth0")
        _ip("-n", self._namespace, "neighbor", "replace", *entry, "nud", "permanent")
        try:
            yield
        finally:
            _ip("-n", self._namespace, "neighbor", "delete", *entry)

    def cut(self):
        """Frames get lost. Nobody is told."""
        _ip("link", "set", self._link, "nomaster")

    def slow(self, seconds):
        """Each frame that leaves the machine arrives so much later."""
        self.cut()
        command = [sys.executable, "-m", f"{__package__}.wire", self._link, str(seconds)]
        self._wire = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        leftovers.end_group_with_us(self._wire.pid)
        assert self._wire.stdout.readline() == b"ready\n"
        side = f"{self._link}-x"
        _ip("link", "add", side, "type", "bridge")
        # Else the machine itself would answer here for its own address, without the wait.
        Path(f"/proc/sys/net/ipv4/conf/{side}/arp_ignore").write_text("1")
        for link, bridge in ((f"{self._link}-i", side), (f"{self._link}-o", _BRIDGE)):
            _ip("link", "set", link, "master", bridge, "up")
        _ip("link", "set", side, "up")
        _ip("link", "set", self._link, "master", side)

    def heal(self):
        """The machine is there, and its link is whole and fast."""
        if not self._is_there:
            self._appear()
        if self._wire is not None:
            self.close()
            _ip("link", "delete", f"{self._link}-x")
        _ip("link", "set", self._link, "master", _BRIDGE)

    def close(self):
        if self._wire is not None:
            self._wire.kill()
            self._wire.communicate()
            self._wire = None

    def run(self, act, *arguments):
        """What `act` returns. The processes that it starts are on this machine."""
        with ThreadPoolExecutor(1) as pool:  # a thread of its own, which ends with its namespaces
            pool.submit(self._enter).result()
            return pool.submit(act, *arguments).result()

    def _enter(self):
        with Path(f"/run/netns/{self._namespace}").open("rb") as namespace:
            _checked(_libc.setns(namespace.fileno(), _CLONE_NEWNET))
        _checked(_libc.unshare(_CLONE_NEWUTS))
        socket.sethostname(self.name)


def _checked(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _locked():
    """Until the file is closed, which the end of the process does."""
    file = _LOCK.open("w")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def _ip(*words):
    said = subprocess.run(["ip", *words], check=True, capture_output=True, text=True)  # noqa: S607 (wherever it is)
    return said.stdout
