"""Measures work with a large ledger: sends, ticks, API requests, and pages of the console."""

import json
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from bench import filling, requests, rows
from bench.console import pages
from bench.costs import Cost, cost_of, run
from bench.web import Request
from pushsvc.common.platforms import Platform

if TYPE_CHECKING:
    from django.test import Client

    from channels_app.models import Channel
    from notifications_app.pipeline.lease import Lease

Steps = dict[str, Callable[[], object]]

_CLAIMS: Final = 20
_TIMES: Final = 10
_PAGE_TIMES: Final = 3
_FEW: Final = 1_000
NIL: Final = UUID(int=0)


def sending(channel: "Channel", subscribers: int) -> dict[str, Cost]:
    """The costs of sends to ten devices of another channel, and of a send to all, which stays half
    sent."""
    leases: list[Lease] = []
    ten = filling.channel_with(10, platforms=[rows.PLATFORM])
    costs = _each({"send to ten devices of another channel": lambda: _plan_everywhere(ten)}, _TIMES)
    costs |= {"plan until the first batch": cost_of(lambda: leases.append(_first(channel)))}
    costs["plan, a recipient"] = cost_of(_plan_rest, subscribers)
    claims = min(_CLAIMS, subscribers // 4000)
    costs["claim"] = cost_of(lambda: leases.extend(claim() for _ in range(claims)), claims)
    costs["outcome, a recipient"] = cost_of(partial(deliver_all, leases), 1000 * len(leases))
    return costs


def deliver_all(leases: "Iterable[Lease]") -> None:
    for lease in leases:
        rows.deliver(lease, rows.FLUSH)


def claim() -> "Lease":
    from notifications_app.pipeline import batches

    return batches.claim(rows.PLATFORM, most=1, skip=[], processes=1)[0]


def _first(channel: "Channel") -> "Lease":
    from notifications_app.pipeline import batches, planning

    rows.send(channel)
    while True:
        planning.work(seconds=0.01)
        if leases := batches.claim(rows.PLATFORM, most=1, skip=[], processes=1):
            return leases[0]


def _plan_everywhere(channel: "Channel") -> None:
    """Plans a notification for all platforms completely; the channel has one of them."""
    from notifications_app.models import Notification

    Notification.objects.create(
        channel=channel, body="bench", ttl=3600, target_platforms=list(Platform)
    )
    _plan_rest()
    rows.deliver(claim(), rows.FLUSH)


def _plan_rest() -> None:
    from notifications_app.pipeline import planning

    while planning.work(seconds=3600):
        pass


def mark(channel: "Channel") -> None:
    """Sets an attribute and a tag on a thousand devices of the channel."""
    run(_MARK, {"channel": channel.pk, "few": _FEW})


def few(channel: "Channel") -> dict[str, Cost]:
    """The costs of sends to the devices that `mark` chose, and of counting them."""
    from subscriptions_app.audiences.sizes import segment_size
    from subscriptions_app.segments.services import segment_create

    rule = {"attribute": "vip", "operator": "eq", "value": "yes"}
    segment = segment_create(channel=channel, name="few", rule=rule)
    steps: Steps = {
        f"send to a tag of {_FEW:,}": lambda: _plan_to(channel, {"tag": "team-7"}),
        f"send to a rule that {_FEW:,} match": lambda: _plan_to(channel, rule),
        "count of a rule": lambda: segment_size(segment),
    }
    return _each(steps, _TIMES)


def _plan_to(channel: "Channel", rule: dict[str, Any]) -> None:
    from notifications_app.models import Notification

    own = Notification.objects.create(
        channel=channel, body="bench", ttl=3600, rule=rule, target_platforms=[rows.PLATFORM]
    )
    _plan_rest()
    own.refresh_from_db()
    if own.recipient_count != _FEW:
        raise RuntimeError(f"it was planned for {own.recipient_count}")


def reading(channel: "Channel") -> dict[str, Cost]:
    """The costs of ticks, which run every second, and of requests."""
    return _each(_ticks(), _TIMES) | _each(_requests(channel), _TIMES)


def _each(steps: Steps, times: int) -> dict[str, Cost]:
    """The costs of the steps. Each step runs once before, to warm up."""
    costs = {}
    for name, step in steps.items():
        step()
        costs[name] = cost_of(partial(repeat, step, times), times)
    return costs


def repeat(step: Callable[[], object], times: int) -> None:
    for _ in range(times):
        step()


def _ticks() -> Steps:
    from notifications_app import tasks
    from notifications_app.reporting import installation

    return {
        "tick": tasks.tick,
        "metrics of notifications": installation.open_notifications,
        "metrics of batches": installation.open_batches,
    }


def _requests(channel: "Channel") -> Steps:
    """Requests of the API, and functions that read or write the ledger for other pages."""
    from django.test import Client

    from notifications_app import selectors
    from notifications_app.models import Notification
    from subscriptions_app.models import Subscription

    client, key = Client(), requests.authorization(channel)
    newest = Notification.objects.filter(channel=channel, status="sent").order_by("-id")[0]
    page = selectors.log_after(newest.pk, after=NIL, limit=1000)
    device = Subscription.objects.get(pk=page[-1].subscription_id)
    untold, number = iter(page), count()

    def get(path: str) -> Callable[[], object]:
        return lambda: _ask(client, ("GET", path, None, key))

    return {
        "GET /channel": get(f"/channel/{channel.pk}"),
        "GET /notifications": get(f"/notifications/{channel.pk}"),
        "GET /notification": get(f"/notification/{newest.pk}"),
        "GET /notification/…/details": get(f"/notification/{newest.pk}/details"),
        "POST /subscribe, new": lambda: _ask(client, requests.subscribe(channel, next(number))),
        "POST /subscribe, known": lambda: _ask(client, requests.subscribe(channel, "known")),
        "an event": lambda: click(newest.pk, next(untold).subscription_id),
        "1,000 lines of the log": lambda: selectors.log_after(newest.pk, after=NIL, limit=1000),
        "outcomes of a device": lambda: selectors.subscriber_deliveries(device, notifications=20),
    }


def _ask(client: "Client", request: Request) -> None:
    method, path, body, headers = request
    sent: dict[str, Any] = {"content_type": "application/json", "headers": headers}
    answer = client.generic(method, path, "" if body is None else json.dumps(body), **sent)
    if answer.status_code not in (200, 201):
        raise RuntimeError(f"{method} {path} was answered {answer.status_code}: {answer.content!r}")


def click(notification_id: UUID, subscription_id: UUID) -> None:
    """Records a click in a transaction, so that it is recorded in this session."""
    from django.db import transaction

    from notifications_app.events import Event, events_record

    with transaction.atomic():
        events_record([Event(notification_id, subscription_id, "clicked")])


def console(channel: "Channel") -> dict[str, Cost]:
    """The costs of the console's pages, for a superuser."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get_or_create(username="root", defaults=_ROOT)[0])
    steps = {name: _page(client, path) for name, path in pages(channel).items()}
    return {f"console: {name}": cost for name, cost in _each(steps, _PAGE_TIMES).items()}


_ROOT: Final = {"is_staff": True, "is_superuser": True}


def _page(client: "Client", path: str) -> Callable[[], object]:
    def get() -> None:
        answer = client.get(path, follow=True)
        if answer.status_code != 200:
            raise RuntimeError(f"{path} was answered {answer.status_code}")

    return get


_MARK: Final = """
WITH marked AS (
  UPDATE subscriptions_app_subscription SET attributes = attributes || '{"vip": "yes"}'
  WHERE id IN (SELECT id FROM subscriptions_app_subscription WHERE channel_id = %(channel)s
               ORDER BY address_sha256 LIMIT %(few)s)
  RETURNING channel_id, platform, id
)
INSERT INTO subscriptions_app_tag (channel_id, platform, tag, subscription_id)
SELECT channel_id, platform, 'team-7', id FROM marked
"""
