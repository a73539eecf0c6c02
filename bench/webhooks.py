"""Compares what facts for webhooks add to sends, clicks and registrations.

Each kind of work is done in this process and its database session: without the statements that
write facts (`before`), with them but without a webhook, and with a webhook that wants the fact. A
send goes to nobody, so the end of the notification is the largest part of it that it can be.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bench import rows
from bench.database import own_database
from bench.results import Options, Result, ResultRow, ratio

if TYPE_CHECKING:
    from channels_app.models import Channel

    Prepare = Callable[[Channel, int], Callable[[], Any]]

_TIMES: Final = {"a send": 20, "a click": 60, "a new device": 40}  # of a kind in a round
_AIMS: Final = {"a send": "1.1", "a click": "1.25", "a new device": ""}
_PLAIN_AIM: Final = "1.03"


def measure(options: Options) -> Result:
    result = Result()
    with own_database():
        for what, work in _works().items():
            spent: dict[str, list[float]] = {"before": [], "plain": [], "webhook": []}
            channels = {kind: _channel(has_webhook=kind == "webhook") for kind in spent}
            for number in range(options.rounds + 1):
                with result.load.round():
                    for kind, costs in spent.items():
                        with _without_facts() if kind == "before" else _as_it_is():
                            cost = _cost(work, channels[kind], _TIMES[what])
                        if number:  # the first round warms up
                            costs.append(cost)
            before, plain, webhook = spent.values()
            result.rows += [
                ResultRow(f"{what}, without facts", "CPU-µs", before),
                ResultRow("no webhook", "CPU-µs", plain, ratio(plain, before), _PLAIN_AIM),
                ResultRow("a webhook", "CPU-µs", webhook, ratio(webhook, before), _AIMS[what]),
            ]
    return result


def _works() -> "dict[str, Prepare]":
    """Each prepares the work of a round, and returns the work."""
    return {"a send": _send, "a click": _click, "a new device": _register}


def _cost(
    prepare: "Callable[[Channel, int], Callable[[], Any]]", channel: "Channel", times: int
) -> float:
    """Microseconds of CPU, of this process and its database session, for each."""
    work = prepare(channel, times)
    before = _cpu()
    work()
    return 1e6 * (_cpu() - before) / times


def _send(channel: "Channel", times: int) -> Callable[[], Any]:
    """From the request's body to the end of the notification, one after the other."""
    from notifications_app.content.values import Content, SendRequest
    from notifications_app.pipeline import planning
    from notifications_app.sends.services import notification_accept
    from pushsvc.common.platforms import Platform

    request = SendRequest(content=Content(body="x"), target_platforms=(Platform.WEB,))

    def work() -> None:
        for _ in range(times):
            notification_accept(channel=channel, request=request)
            planning.work(seconds=60)

    return work


def _click(channel: "Channel", times: int) -> Callable[[], Any]:
    from notifications_app.events import Event, events_record
    from notifications_app.models import Delivery, Notification

    _register(channel, times)()
    _plan(channel)
    newest = Notification.objects.filter(channel=channel).latest("pk")
    ids = Delivery.objects.filter(notification_id=newest.pk).values_list(
        "subscription_id", flat=True
    )
    events = [Event(newest.pk, id_, "clicked") for id_ in ids[:times]]

    def work() -> None:
        for event in events:
            events_record([event])

    return work


def _plan(channel: "Channel") -> None:
    from notifications_app.models import Notification
    from notifications_app.pipeline import planning

    Notification.objects.create(channel=channel, body="x", ttl=3600, target_platforms=["web"])
    planning.work(seconds=600)


def _register(channel: "Channel", times: int) -> Callable[[], Any]:
    from pushsvc.common.ids import uuid7
    from pushsvc.common.platforms import Platform
    from subscriptions_app.addresses import Address
    from subscriptions_app.devices.registration import subscription_register
    from subscriptions_app.devices.values import Facts

    facts = Facts(p256dh="BA" + "A" * 85, auth="A" * 22)

    def work() -> None:
        for _ in range(times):
            address = Address.of(Platform.WEB, f"https://fcm.googleapis.com/{uuid7()}")
            subscription_register(channel=channel, address=address, facts=facts)

    return work


def _channel(*, has_webhook: bool) -> "Channel":
    from channels_app.feeds import EVENTS
    from channels_app.services import channel_create
    from channels_app.webhooks import webhook_create

    channel = channel_create(name="Bench")
    if has_webhook:
        webhook_create(channel=channel, url="https://backend.shop.com/", events=EVENTS)
    return channel


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _without_facts() -> Iterator[None]:
    """The statements as they would be without webhooks."""
    from notifications_app import events
    from notifications_app.pipeline import counting
    from subscriptions_app.devices import fast_path

    places = ((counting, "FINISH"), (events, "_RECORD"), (fast_path, "_FEED"))
    kept = [(module, name, getattr(module, name)) for module, name in places]
    for module, name, statement in kept:
        setattr(module, name, _FACTS.sub("NULL", statement))
    fast_path._statements.cache_clear()
    try:
        yield
    finally:
        for module, name, statement in kept:
            setattr(module, name, statement)
        fast_path._statements.cache_clear()


_FACTS: Final = re.compile(r"feed_add\([^)]*\)")


def _cpu() -> float:
    return time.process_time() + rows.database_figures()["cpu"]
