"""A TLS server that accepts every message at once and counts the messages.

It is nginx if nginx is installed, because nginx costs less than its clients; otherwise the bench's
own, slower server. Both support HTTP/1.1 and HTTP/2, and append one line to a file for each
message.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import own_sink
from bench.ports import own_port
from sandbox.certificate import server_chain

HOST: Final = "127.0.0.1"
_LINE: Final = "m\n"
_NGINX: Final = """\
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    log_format line "m";
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 100000000;
    keepalive_timeout 600s;
    server {{
        listen {host}:{port} ssl http2 backlog=4096;
        http2_max_concurrent_streams 1000;
        ssl_certificate {folder}/server.pem;
        ssl_certificate_key {folder}/server.pem;
        location /push/ {{
            access_log {folder}/messages line;
            add_header Location https://{host}:{port}/message/1;
            return 201;
        }}
        location /3/device/ {{
            access_log {folder}/messages line;
            add_header apns-id $http_apns_id;
            return 200;
        }}
        location /v1/projects/ {{
            access_log {folder}/messages line;
            default_type application/json;
            return 200 '{{"name": "projects/bench/messages/1"}}';
        }}
        location = /token {{
            default_type application/json;
            return 200 '{{"access_token": "bench", "expires_in": 3599, "token_type": "Bearer"}}';
        }}
    }}
}}
"""


@dataclass(frozen=True)
class Sink:
    """`authority`: the file to trust. `patience`: how many seconds after the last answer a message
    may still be counted."""

    program: str
    host: str
    port: int
    authority: Path
    messages: Path
    patience: float = 10.0

    @property
    def origin(self) -> str:
        return f"https://{self.host}:{self.port}"

    @property
    def count(self) -> int:
        """How many messages were counted. One may be written a moment after its answer."""
        return self.messages.stat().st_size // len(_LINE)

    @contextmanager
    def expecting(self, count: int) -> Iterator[None]:
        """Raises RuntimeError unless exactly `count` messages arrive during the block."""
        before = self.count
        yield
        until = time.monotonic() + self.patience
        while self.count - before < count and time.monotonic() < until:
            time.sleep(0.01)
        if self.count - before != count:
            raise RuntimeError(f"the sink got {self.count - before} messages of {count}")


def find_nginx() -> str | None:
    """The path of nginx, or None. Debian installs it in a folder that only root's PATH contains."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def running_sink(nginx: str | None, *, host: str = HOST) -> Iterator[Sink]:
    """Runs a sink. `nginx`: the program; None means the bench's own sink."""
    with tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as name:
        folder, port = Path(name), own_port()
        sink = Sink(_version(nginx), host, port, folder / "authority.pem", folder / "messages")
        chain, authority = server_chain(host)
        (folder / "server.pem").write_bytes(chain)
        sink.authority.write_text(authority)
        sink.messages.touch()
        command = _nginx(nginx, folder, host, port) if nginx else _own(folder, host, port)
        with subprocess.Popen(command) as process:
            try:
                _await_listening(process, host, port)
                yield sink
            finally:
                process.terminate()


def _version(nginx: str | None) -> str:
    if nginx is None:
        return "a sink of the bench's own (nginx is not installed)"
    printed = subprocess.run([nginx, "-v"], capture_output=True, text=True, check=True).stderr
    return printed.strip().rpartition(" ")[2]


def _nginx(program: str, folder: Path, host: str, port: int) -> list[str]:
    # Its worker may run as another user, and writes here.
    folder.chmod(0o777)
    (folder / "messages").chmod(0o666)
    configuration = folder / "nginx.conf"
    configuration.write_text(_NGINX.format(folder=folder, port=port, host=host))
    return [program, "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(configuration)]


def _own(folder: Path, host: str, port: int) -> list[str]:
    return [sys.executable, "-m", own_sink.__name__, str(folder), host, str(port)]


def _await_listening(process: "subprocess.Popen[bytes]", host: str, port: int) -> None:
    while not _is_listening(host, port):
        if process.poll() is not None:
            raise RuntimeError(f"the sink ended with {process.returncode}")
        time.sleep(0.02)


def _is_listening(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0
