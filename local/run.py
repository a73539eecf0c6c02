"""`make run`: starts everything on this machine, and supervises it.

Starts PostgreSQL and Redis if none are given, runs migrations, starts a sandbox of the push
services and the processes of the Procfile, and sends a notification to the sandbox's devices
through the HTTP interface. Then it runs until SIGINT, SIGTERM or SIGHUP. When it stops, web, beat
and workers finish their work before it stops the sandbox, Redis and PostgreSQL. This takes at most
10 seconds.
"""

import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from honcho.environ import parse_procfile

from local import embedded
from local.embedded import EmbeddedError, Home, Servers
from local.supervisor import database, screen
from local.supervisor.children import Children
from local.supervisor.demo import DEMO_FILE, TERMINAL, Demo
from local.supervisor.http import BUSY_SECONDS, Origin, UnreachableError
from local.supervisor.sandbox import PROBES, Sandbox
from local.supervisor.screen import say

CHECKOUT = Path(__file__).resolve().parents[1]
# For a slow machine. A process that ends meanwhile ends the wait.
READY_SECONDS = 120.0
DEMO_SECONDS = 120.0
# Their sum is less than the 10 seconds that stopping may take.
DRAIN_SECONDS = 6.0
SANDBOX_STOP_SECONDS = 0.5
SERVER_STOP_SECONDS = 1.0

_SANDBOX = "sandbox"


class StopRequest:
    """Remembers SIGINT, SIGTERM or SIGHUP. The signal itself interrupts nothing."""

    def __init__(self) -> None:
        self._is_made = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._remember)

    def wait(self, seconds: float) -> None:
        """Sleeps. Raises KeyboardInterrupt as soon as there was a signal."""
        deadline = time.monotonic() + seconds
        while not self._is_made and time.monotonic() < deadline:
            time.sleep(0.02)
        if self._is_made:
            raise KeyboardInterrupt

    def _remember(self, _number: int, _frame: FrameType | None) -> None:
        self._is_made = True


class Supervisor:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.service = _service()
        self.sandbox: Sandbox | None = None
        self._children = Children(home, CHECKOUT)
        self._servers: Servers | None = None
        self._stop_request = StopRequest()

    def start(self) -> None:
        """Raises EmbeddedError or KeyboardInterrupt. Call `stop` after either."""
        if self._children.end_leftovers():
            say("ended processes that an earlier run had left behind")
        _require_free(self.service)
        self._choose_settings()
        self._start_sandbox()
        self._start_servers()
        self._await_sandbox()
        say("preparing the database")
        database.migrate()
        self._start_procfile()
        password = database.ensure_admin(self.home)
        self._await(self.service, "/readyz", "web")
        demo = Demo.open(self.home, self.service, database.create_channel)
        database.disconnect()
        demo.subscribe(self._controls)
        demo.save_environment(self._controls)
        result = self._deliver(demo) if self._controls else ""
        say(screen.banner(demo, password, self.sandbox, result))

    def stay(self) -> NoReturn:
        """Restarts processes that end, until there is a signal. Raises what `start` raises."""
        while True:
            for line in self._children.revive():
                say(line)
            if self._servers is not None:
                for name in self._servers.revive():
                    say(f"{name} ended and was restarted")
            self._stop_request.wait(0.5)

    def stop(self) -> None:
        """Ends all processes in an order that allows each to finish its work."""
        names = [name for name in self._children.names() if name != _SANDBOX]
        self._children.stop(names, seconds=DRAIN_SECONDS)
        self._children.stop([_SANDBOX], seconds=SANDBOX_STOP_SECONDS)
        if self._servers is not None:
            self._servers.stop(seconds=SERVER_STOP_SECONDS)

    def _start_servers(self) -> None:
        postgres = not embedded.is_given("DATABASE_URL")
        redis = not embedded.is_given("REDIS_URL")
        if postgres or redis:
            names = [name for name, on in (("PostgreSQL", postgres), ("Redis", redis)) if on]
            say(f"starting {' and '.join(names)}")
            self._servers = embedded.start(self.home.root, postgres=postgres, redis=redis, say=say)
            self._servers.put_into_environment()

    def _choose_settings(self) -> None:
        """Chooses settings that the environment lacks, for our processes and later commands."""
        chosen: dict[str, str] = {}
        if not embedded.is_given("PUBLIC_BASE_URL"):
            chosen["PUBLIC_BASE_URL"] = self.service.public_url
        if os.environ.get("SANDBOX") != "off":
            self.sandbox = Sandbox.of(self.home, taken=self.service.port)
            chosen |= self.sandbox.settings()
        self.home.save_settings(chosen)
        embedded.make_secrets(self.home)
        os.environ.update(chosen)
        embedded.fill_environment(self.home)
        os.environ.update(PORT=str(self.service.port), PYTHONUNBUFFERED="1")
        os.environ["DEMO_RECORD"] = str(self.home.root / DEMO_FILE)
        os.environ.setdefault("GRANIAN_HOST", self.service.host)
        os.environ.setdefault("LOG_FORMAT", "text")

    @property
    def _controls(self) -> Mapping[str, Origin]:
        """The control interfaces of the platforms that use the sandbox."""
        return self.sandbox.controls if self.sandbox else {}

    def _start_sandbox(self) -> None:
        if self.sandbox is not None:
            self._children.start(_SANDBOX, self.sandbox.command, without=embedded.SECRETS)

    def _await_sandbox(self) -> None:
        """Waits until the sandbox has written PROVIDER_CA_FILE, which other processes read."""
        for platform, control in self._controls.items():
            self._await(control, PROBES[platform], _SANDBOX)

    def _start_procfile(self) -> None:
        processes = parse_procfile((CHECKOUT / "Procfile").read_text(encoding="utf-8")).processes
        commands = {name: command for name, command in processes.items() if name != "release"}
        say(f"starting {', '.join(commands)}")
        for name, command in commands.items():
            self._children.start(name, command)

    def _await(self, origin: Origin, path: str, name: str) -> None:
        """Waits until this path returns 200. Raises EmbeddedError if a process ends meanwhile."""
        said = "nothing"
        for _ in self._while_patient(READY_SECONDS):
            try:
                reply = origin.request("GET", path)
            except UnreachableError:
                continue
            if reply.status == 200:
                return
            said = f"{reply.status} {reply.body}"
        raise EmbeddedError(
            f"{name} was not ready after {READY_SECONDS:.0f} s: {path} returned {said}"
            f" (see {self.home.root}/log/{name}.log)"
        )

    def _deliver(self, demo: Demo) -> str:
        """Sends one notification to the demo devices. Returns its result, as the API reports it."""
        say(f"sending a notification to the sandbox's devices: {', '.join(self._controls)}")
        sent = demo.send(self._controls)
        shown = demo.notification(sent)
        for _ in self._while_patient(DEMO_SECONDS):
            shown = demo.notification(sent)
            if shown["status"] in TERMINAL:
                break
        demo.note_result(shown)
        counts = f"delivered {shown['delivered_count']} of {shown['recipient_count']}"
        return counts if shown["status"] == "sent" else f"{counts}, status {shown['status']}"

    def _while_patient(self, seconds: float) -> Iterator[None]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._children.require_alive()
            yield
            self._stop_request.wait(0.1)


def main() -> int:
    """Returns the exit code: 0 after a signal, 1 after an error, which is printed in one line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pushsvc.settings")
    home = Home.of_environment()
    try:
        with _only_run_of(home):
            return _supervise(Supervisor(home))
    except EmbeddedError as error:
        say(f"pushsvc: {error}")
        return 1


def _supervise(supervisor: Supervisor) -> int:
    try:
        supervisor.start()
        supervisor.stay()
    except KeyboardInterrupt:
        say("stopping")
        return 0
    except EmbeddedError as error:
        say(f"pushsvc: {error}")
        return 1
    finally:
        supervisor.stop()


@contextmanager
def _only_run_of(home: Home) -> Iterator[None]:
    with home.open_lock("supervisor") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise EmbeddedError(
                f"already running from {home.root} (process {lock.read().strip()}); "
                "stop it, or set PUSHSVC_HOME and PORT for another"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _service() -> Origin:
    text = os.environ.get("PORT") or "8000"
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise EmbeddedError(f"PORT is {text!r}: expected a whole number from 1 to 65535")
    host = os.environ.get("GRANIAN_HOST") or "127.0.0.1"
    reachable = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 (compared, not bound)
    public_url = os.environ.get("PUBLIC_BASE_URL") or f"http://{reachable}:{text}"
    return Origin(reachable, int(text), public_url.rstrip("/"), BUSY_SECONDS)


def _require_free(service: Origin) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((service.host, service.port))
        except OSError as error:
            raise EmbeddedError(
                f"port {service.port} on {service.host} is not available ({error.strerror}); "
                f"choose another: make run PORT={service.port + 1}"
            ) from error


if __name__ == "__main__":
    sys.exit(main())
