"""Measures whether reads, explanations and registrations cost more in a large channel than in a
small one.

Both channels have 10,000 notifications. The same web process answers for both, in turn. The figures
are the CPU of the web process and of PostgreSQL together.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bench import filling
from bench.database import own_database
from bench.requests import Kinds, authorization, cpu_of_each, prepare, subscribe
from bench.results import Options, Result, ResultRow, ratio
from bench.web import running_web

if TYPE_CHECKING:
    from channels_app.models import Channel

_SMALL: Final = 1_000
_NOTIFICATIONS: Final = 10_000
_AIM: Final = "under 1.15"


def measure(options: Options) -> Result:
    # A channel may be read 3,000 times a minute.
    options = replace(options, requests=min(options.requests, 100))
    small, large = min(_SMALL, options.recipients), options.recipients
    result = Result(remarks=[f"{_NOTIFICATIONS:,} notifications in each channel."])
    with own_database() as postgres:
        channels = {size: _channel(size) for size in (small, large)}
        prepare()
        kinds = {
            (name, size): make
            for size, channel in channels.items()
            for name, make in _kinds(channel).items()
        }
        in_turn = {f"{name}, {size:,}": kinds[name, size] for name, size in sorted(kinds)}
        with running_web() as web:
            spent = cpu_of_each(web, in_turn, options, result.load, web.pid, postgres)
    for name in sorted({name for name, _ in kinds}):
        few, many = spent[f"{name}, {small:,}"], spent[f"{name}, {large:,}"]
        result.rows.append(ResultRow(f"{name}, channel of {small:,}", "CPU-ms", few))
        result.rows.append(
            ResultRow(f"{name}, channel of {large:,}", "CPU-ms", many, ratio(many, few), _AIM)
        )
    return result


def _channel(subscribers: int) -> "Channel":
    from channels_app.services import channel_create

    channel = channel_create(name=f"Of {subscribers}")
    filling.fill(channel, subscribers, _NOTIFICATIONS)
    return channel


def _kinds(channel: "Channel") -> Kinds:
    from notifications_app.models import Notification
    from subscriptions_app.models import Subscription

    key = authorization(channel)
    sent = Notification.objects.filter(channel=channel, status="sent").order_by("-id")[0]
    device = Subscription.objects.filter(channel=channel)[0]
    explain, about = f"/channel/{channel.pk}/explain", {"subscription_id": str(device.pk)}
    by_notification = about | {"notification_id": str(sent.pk)}
    rule = {"attribute": "plan", "operator": "eq", "value": "pro"}
    by_send = about | {"send": {"body": "Only today.", "rule": rule}}
    return {
        "read the channel": lambda _: ("GET", f"/channel/{channel.pk}", None, key),
        "list notifications": lambda _: ("GET", f"/notifications/{channel.pk}", None, key),
        "read a notification": lambda _: ("GET", f"/notification/{sent.pk}", None, key),
        "explain a notification": lambda _: ("POST", explain, by_notification, key),
        "explain a send": lambda _: ("POST", explain, by_send, key),
        "subscribe, new": lambda number: subscribe(channel, number),
        "subscribe, known": lambda _: subscribe(channel, "known"),
    }
