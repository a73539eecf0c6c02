"""`python -m sandbox` runs push services for web, Android and iOS with simulated devices."""

import asyncio
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sandbox import ApnsSandbox, FcmSandbox, WebSandbox
from sandbox.serving import HttpServer, Sandbox

T = TypeVar("T")

_INTRODUCTION = """\
The sandboxes of the push services run until Ctrl-C:
  web      {web}
  Android  {fcm}
  iOS      {apns_control} (its APNs: {apns})

To let pushsvc send to them, set:
  WEBPUSH_TRUSTED_ORIGINS={web}
  FCM_API_BASE={fcm}
  GOOGLE_TOKEN_URI={token_uri}
  APNS_SERVER={apns}
  PROVIDER_CA_FILE={ca_file}

Web: create a device, let the next request to it be throttled, read what it received.
  curl -X POST {web}/subscriptions
  curl -X PUT {web}/subscriptions/ID/behaviour \\
    -d '{{"mode": "throttled", "times": 1, "retry_after": 5}}'
  curl {web}/subscriptions/ID/messages
To use a real Firefox, set in about:config:
  dom.push.serverURL={browsers}
  dom.push.testing.allowInsecureServerURL=true

Android: the same, after creating the JSON for fcm_service_account.
  curl -X POST {fcm}/projects/demo-app/service-accounts
  curl -X POST {fcm}/projects/demo-app/devices
  curl -X PUT {fcm}/devices/ID/behaviour \\
    -d '{{"mode": "throttled", "times": 1, "retry_after": 5}}'
  curl {fcm}/devices/ID/messages

iOS: the same, after creating the JSON for apns_key.
  curl -X POST {apns_control}/apns/keys
  curl -X POST {apns_control}/apns/devices
  curl -X PUT {apns_control}/apns/devices/TOKEN/behaviour \\
    -d '{{"mode": "throttled", "times": 1, "retry_after": 5}}'
  curl {apns_control}/apns/devices/TOKEN/messages
"""


def main() -> None:
    options = vars(_parser().parse_args())
    if options["state_dir"]:
        options["state_dir"].mkdir(mode=0o700, parents=True, exist_ok=True)
    asyncio.run(_serve(_Sandboxes(options)))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port", type=int, default=8030, help="port of web push (default 8030); 0: any free port"
    )
    parser.add_argument("--fcm-port", type=int, help="port of FCM (default: --port + 1)")
    parser.add_argument("--apns-port", type=int, help="port of APNs (default: --port + 2)")
    parser.add_argument(
        "--apns-control-port",
        type=int,
        help="port of the HTTP interface to APNs' keys and devices (default: --port + 3)",
    )
    parser.add_argument(
        "--state-dir",
        type=Path,
        help="folder that keeps devices and credentials when it restarts (files of mode 600)",
    )
    parser.add_argument(
        "--ca-file",
        type=Path,
        help="file for the certificate that PROVIDER_CA_FILE names (default: a temporary file)",
    )
    return parser


async def _serve(sandboxes: "_Sandboxes") -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stopped.set)
    await sandboxes.start()
    sys.stdout.write(sandboxes.introduction)
    sys.stdout.flush()
    await stopped.wait()
    await sandboxes.stop()


class _Sandboxes:
    """The three sandboxes and the HTTP server for APNs' control. Exits with an error if a port
    is in use."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._web = self._made(WebSandbox, "port", 0, "web")
        self._fcm = self._made(FcmSandbox, "fcm_port", 1, "fcm")
        self._control = self._made(partial(HttpServer, ssl_context=None), "apns_control_port", 3)
        apns = partial(ApnsSandbox, ca_file=options["ca_file"])
        self._apns = self._made(apns, "apns_port", 2, "apns")
        self._control.application.add_routes(self._apns.control_routes())

    @property
    def introduction(self) -> str:
        return _INTRODUCTION.format(
            web=self._web.origin,
            browsers=self._web.browser_url,
            fcm=self._fcm.origin,
            token_uri=self._fcm.token_uri,
            apns=self._apns.server,
            ca_file=self._apns.ca_file,
            apns_control=self._control.origin,
        )

    async def start(self) -> None:
        await asyncio.gather(*(each.start() for each in self._all()))

    async def stop(self) -> None:
        await asyncio.gather(*(each.stop() for each in self._all()))

    def _all(self) -> tuple[Sandbox, ...]:
        return self._web, self._fcm, self._apns, self._control

    def _made(self, make: Callable[..., T], option: str, offset: int, state: str = "") -> T:
        """Creates a sandbox on the port of this option, or `offset` after --port."""
        host, first, port = (self._options[name] for name in ("host", "port", option))
        if port is None:
            port = first and first + offset
        facts: dict[str, object] = {"host": host, "port": port}
        if state:
            folder = self._options["state_dir"]
            facts["state_file"] = folder and folder / f"{state}.jsonl"
        try:
            return make(**facts)
        except (OSError, OverflowError) as error:
            sys.exit(f"Cannot serve on {host}:{port}: {error}")


if __name__ == "__main__":
    main()
