"""Measures the CPU of a web process for each request, as a ratio to a view that inserts one row.

Each round makes all kinds of requests in turn, over one connection. The figures are the CPU of the
web process, so other load on the machine matters little.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bench.database import own_database
from bench.meter import Load, spending
from bench.results import Options, Result, ResultRow, ratio
from bench.web import Request, Web, running_web

if TYPE_CHECKING:
    from channels_app.models import Channel

_BARE: Final = "bare INSERT"
_AIM: Final = "2"

# By name: a function that makes the request with a number.
Kinds = dict[str, Callable[[int], Request]]


def measure(options: Options) -> Result:
    result = Result()
    with _running() as (web, channel):
        spent = cpu_of_each(web, kinds_of(channel), options, result.load, web.pid)
    bare = spent[_BARE]
    for name, values in spent.items():
        is_bare = name == _BARE
        result.rows.append(
            ResultRow(
                name,
                "CPU-ms",
                values,
                None if is_bare else ratio(values, bare),
                "" if is_bare else _AIM,
            )
        )
    return result


def cpu_of_each(
    web: Web, kinds: Kinds, options: Options, load: Load, *pids: int
) -> dict[str, list[float]]:
    """Milliseconds that the processes used for a request, by kind. A first round warms up."""
    found: dict[str, list[float]] = {name: [] for name in kinds}
    count = options.requests
    _ask_all(web, kinds, range(count))
    for turn in range(1, options.rounds + 1):
        with load.round():
            for name, make in kinds.items():
                with spending(*pids) as spent:
                    _ask_all(web, {name: make}, range(turn * count, (turn + 1) * count))
                found[name].append(1000 * spent.cpu / count)
    return found


def _ask_all(web: Web, kinds: Kinds, numbers: range) -> None:
    for make in kinds.values():
        for number in numbers:
            web.ask(make(number))


@contextmanager
def _running() -> "Iterator[tuple[Web, Channel]]":
    with own_database():
        from channels_app.services import channel_create

        channel = channel_create(name="Bench")
        prepare()
        with running_web() as web:
            yield web, channel


def prepare() -> None:
    """Creates the table of the bare view, and removes the limits of existing channels."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bench_bare (id bigserial PRIMARY KEY, text text)")
        cursor.execute(
            "UPDATE channels_app_channel"
            " SET subscribes_per_minute = 1000000, sends_per_second = 1000000"
        )


def kinds_of(channel: "Channel") -> Kinds:
    key = authorization(channel)
    return {
        _BARE: lambda _: ("POST", "/bare", {"title": "x"}, {}),
        "subscribe, new": lambda number: subscribe(channel, number),
        "subscribe, known": lambda _: subscribe(channel, "known"),
        "send-notification": lambda _: ("POST", "/send-notification", {"body": "x"}, key),
    }


def subscribe(channel: "Channel", name: object) -> Request:
    """The registration of the browser with this name."""
    endpoint = f"https://updates.push.services.mozilla.com/wpush/v2/{name}"
    body = {"endpoint": endpoint, "keys": _KEYS, "attributes": {"plan": "pro"}}
    return "POST", "/subscribe", body, {"X-Channel-ID": str(channel.pk)}


def authorization(channel: "Channel") -> dict[str, str]:
    """The header with a new API key."""
    from channels_app.services import api_key_issue

    return {"Authorization": f"Key {api_key_issue(channel=channel, name='bench')[1]}"}


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


_POINT: Final = ec.generate_private_key(ec.SECP256R1()).public_key()
_KEYS: Final = {
    "p256dh": _text(_POINT.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)),
    "auth": _text(bytes(16)),
}
