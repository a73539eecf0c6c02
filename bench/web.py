"""One web process, as the Procfile starts it, with the bare view in addition to the service's."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from bench.ports import own_port
from bench.processes import CHECKOUT

# Method, path, body or None, headers.
Request = tuple[str, str, object, dict[str, str]]


@dataclass(frozen=True)
class Web:
    """A web process and a kept connection to it."""

    pid: int
    connection: http.client.HTTPConnection

    def ask(self, request: Request) -> None:
        """Makes the request. Raises RuntimeError unless the answer is a success."""
        method, path, body, headers = request
        content = None if body is None else json.dumps(body)
        sent = {"Content-Type": "application/json", "Host": "localhost", **headers}
        self.connection.request(method, path, content, sent)
        answer = self.connection.getresponse()
        said = answer.read()
        if answer.status not in (200, 201, 202):
            raise RuntimeError(f"{method} {path} answered {answer.status}: {said!r}")


@contextmanager
def running_web() -> Iterator[Web]:
    port = own_port()
    command = (
        f"{sys.executable} -m granian --interface asginl --port {port} --http 1 --no-ws"
        " --no-log bench.bare:application"
    )
    process = subprocess.Popen(command.split(), cwd=CHECKOUT, env=os.environ)
    try:
        _await(process, port)
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            yield Web(process.pid, connection)
    finally:
        process.terminate()
        process.wait()


def _await(process: "subprocess.Popen[bytes]", port: int) -> None:
    while process.poll() is None:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as web:
                web.request("GET", "/healthz", headers={"Host": "localhost"})
                web.getresponse().read()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the web process did not start")
