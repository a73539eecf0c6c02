"""Compares the costs of devices that belong to people with those of anonymous devices.

Registrations are measured as in the figure of requests: the CPU of the web process for each.
Expiries are measured in this process and its database session, in flushes as a worker writes them.
So are windows of a send with a category, whose devices all belong to people.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from bench import filling, requests, rows
from bench.database import own_database
from bench.results import Options, Result, ResultRow, ratio
from bench.web import Request, running_web

if TYPE_CHECKING:
    from channels_app.models import Channel

_EXPIRED: Final = 3_000  # expiries in a round, of each kind
_PLANNED: Final = 20_000
_PLAIN: Final = "subscribe, new"
_AIMS: Final = {"HS256": "1.6", "ES256": "2.2"}


def measure(options: Options) -> Result:
    result = Result()
    with own_database():
        _measure_subscribes(result, options)
        _measure_expiries(result, options)
        _measure_windows(result, options)
    return result


def _measure_subscribes(result: Result, options: Options) -> None:
    from channels_app.services import channel_create

    channel = channel_create(name="Bench")
    requests.prepare()
    kinds: requests.Kinds = {_PLAIN: lambda number: requests.subscribe(channel, number)}
    for algorithm in _AIMS:
        kinds[algorithm] = _linked(channel, algorithm)
    with running_web() as web:
        spent = requests.cpu_of_each(web, kinds, options, result.load, web.pid)
    result.rows.append(ResultRow(_PLAIN, "CPU-ms", spent[_PLAIN]))
    for algorithm, aim in _AIMS.items():
        what = f"the same with a token ({algorithm}) and 3 tags"
        values = spent[algorithm]
        result.rows.append(ResultRow(what, "CPU-ms", values, ratio(values, spent[_PLAIN]), aim))


def _linked(channel: "Channel", algorithm: str) -> Callable[[int], Request]:
    """Returns a function that makes the request for a new device of a new person, by number."""
    from channels_app.identity_keys import identity_key_create

    if algorithm == "HS256":
        key, signs = identity_key_create(channel=channel, public_key=None)
    else:
        signs, public = _key_pair()
        key, _ = identity_key_create(channel=channel, public_key=public)

    def make(number: int) -> Request:
        name = f"{algorithm}-{number}"
        method, path, body, headers = requests.subscribe(channel, name)
        claims = {"sub": name, "aud": str(channel.pk), "exp": int(time.time()) + 600}
        token = jwt.encode(claims, signs, algorithm, headers={"kid": str(key.pk)})
        proof = {"external_id": name, "identity_token": token, "tags": ["a", "b", f"c-{number}"]}
        return method, path, {**body, **proof}, headers  # type: ignore[dict-item] # an object

    return make


def _key_pair() -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def _measure_expiries(result: Result, options: Options) -> None:
    spent: dict[bool, list[float]] = {False: [], True: []}
    for number in range(options.rounds + 1):
        with result.load.round():
            for is_linked, costs in spent.items():
                cost = _expire(is_linked=is_linked)
                if number:  # the first round warms up
                    costs.append(cost)
    anonymous, linked = spent[False], spent[True]
    result.rows += [
        ResultRow("expiry, anonymous device", "CPU-µs", anonymous),
        ResultRow(
            "expiry, device of a person", "CPU-µs", linked, ratio(linked, anonymous), aim="1.3"
        ),
    ]


def _measure_windows(result: Result, options: Options) -> None:
    """Measures windows. All devices want the category, so both sends have the same recipients."""
    from django.db import connection

    from subscriptions_app.categories.services import category_create

    channel = filling.channel_with(_PLANNED, platforms=[rows.PLATFORM])
    with connection.cursor() as cursor:
        cursor.execute(_LINK_ALL, {"channel": channel.pk})
        cursor.execute(_CHOOSE_ALL, {"channel": channel.pk})
        cursor.execute("VACUUM ANALYZE")
    category_create(channel=channel, key="news", name="News", description="", default=False)
    spent: dict[str, list[float]] = {"": [], "news": []}
    for number in range(options.rounds + 1):
        with result.load.round():
            for category, costs in spent.items():
                cost = _plan(channel, category)
                if number:  # the first round warms up
                    costs.append(cost)
    plain, asked = spent[""], spent["news"]
    result.rows += [
        ResultRow("recipient planned", "CPU-µs", plain),
        ResultRow("the same, with a category", "CPU-µs", asked, ratio(asked, plain), aim="1.4"),
    ]


def _plan(channel: "Channel", category: str) -> float:
    """Microseconds of CPU, of this process and its database session, for each recipient."""
    from notifications_app.models import Notification
    from notifications_app.pipeline import planning

    Notification.objects.create(
        channel=channel,
        category=category,
        body="bench",
        ttl=3600,
        target_platforms=[rows.PLATFORM],
    )
    before = _cpu()
    while planning.work(seconds=3600):
        pass
    return 1e6 * (_cpu() - before) / _PLANNED


def _expire(*, is_linked: bool) -> float:
    """Microseconds of CPU, of this process and its database session, for each expiry."""
    from django.db import connection

    from notifications_app.pipeline import batches

    channel = filling.channel_with(_EXPIRED, platforms=[rows.PLATFORM])
    if is_linked:
        with connection.cursor() as cursor:
            cursor.execute(_LINK_ALL, {"channel": channel.pk})
    rows.plan(channel)
    before = _cpu()
    while leases := batches.claim(rows.PLATFORM, most=1, skip=[], processes=1):
        rows.deliver(leases[0], rows.FLUSH, are_gone=True)
    return 1e6 * (_cpu() - before) / _EXPIRED


def _cpu() -> float:
    return time.process_time() + rows.database_figures()["cpu"]


# As many people as devices.
_LINK_ALL: Final = """
WITH people AS (
  INSERT INTO subscriptions_app_person (id, channel_id, external_id, active_devices)
  SELECT gen_random_uuid(), %(channel)s, id::text, 1
  FROM subscriptions_app_subscription WHERE channel_id = %(channel)s
  RETURNING id, external_id
), linked AS (
  UPDATE subscriptions_app_subscription AS subscription SET person_id = people.id
  FROM people WHERE subscription.id = people.external_id::uuid
)
UPDATE channels_app_channelcounter SET people = android_subscribers,
  linked_devices = android_subscribers
WHERE channel_id = %(channel)s
"""

_CHOOSE_ALL: Final = """
UPDATE subscriptions_app_person SET choices = '{"news": true}' WHERE channel_id = %(channel)s
"""
