"""Measures how many messages are sent after a stop in the console, and until when.

One worker process sends to all devices. After a third of them, a member of staff posts the form of
the console that halts the notification, and then the one that ends it, with the notification's
name. The sink counts the messages.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.results import Options, Result, ResultRow
from bench.service import Service, running_service, send, shown
from bench.sink import Sink, find_nginx, running_sink
from bench.work import TITLE, make_work
from pushsvc.common.platforms import Platform

if TYPE_CHECKING:
    from django.test import Client

_PLATFORM: Final = Platform.ANDROID
_LOOK_SECONDS: Final = 0.05
_CALM_SECONDS: Final = 12.0  # after the answer; longer than calls may still begin


@dataclass(frozen=True)
class _Stop:
    """`rate`: messages a second before the click. Seconds count from the answer."""

    sent_before: int
    sent_after: int
    rate: float
    answer_seconds: float
    last_seconds: float
    ended_seconds: float


def measure(options: Options) -> Result:
    result = Result(remarks=[f"{options.stopped:,} recipients, Android."])
    stops = []
    with (
        tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as folder,
        running_sink(find_nginx()) as sink,
        running_service(_PLATFORM, make_work(Path(folder), sink, options.stopped), sink) as service,
    ):
        staff = _staff()
        for _ in range(options.rounds):
            with result.load.round():
                stops.append(_stop(service, sink, staff, options.stopped))
    result.rows = [
        ResultRow("messages before the click", "", [each.sent_before for each in stops]),
        ResultRow("messages a second before it", "", [each.rate for each in stops]),
        ResultRow("messages after it", "", [each.sent_after for each in stops]),
        ResultRow("as seconds of sending", "s", [each.sent_after / each.rate for each in stops]),
        ResultRow("click to answer", "s", [each.answer_seconds for each in stops]),
        ResultRow(
            "answer to last message", "s", [each.last_seconds for each in stops], aim="under 10"
        ),
        ResultRow("answer to end", "s", [each.ended_seconds for each in stops]),
    ]
    return result


def _staff() -> "Client":
    from django.contrib.auth.models import User
    from django.test import Client

    from channels_app.models import Channel, Membership, Role

    channel = Channel.objects.get()
    user = User.objects.create_user("sender", is_staff=True)
    Membership.objects.create(account=channel.account, user=user, role=Role.SENDER)
    client = Client()
    client.force_login(user)
    return client


def _stop(service: Service, sink: Sink, staff: "Client", messages: int) -> _Stop:
    start = sink.count
    notification_id = send(service.key, _PLATFORM)
    begun, counted = _reached(sink, start + messages // 6)
    click, before = _reached(sink, start + messages // 3)
    _post(staff, "stop", notification_id, "Nobody else gets it")
    answer = time.monotonic()
    _post(staff, "end", notification_id, "is stopped", name=TITLE)
    last, ended, count = answer, 0.0, before
    while time.monotonic() < answer + _CALM_SECONDS or not ended:
        if count != (count := sink.count):
            last = time.monotonic()
        if not ended and shown(service.key, notification_id)["status"] == "sent":
            ended = time.monotonic()
        time.sleep(_LOOK_SECONDS)
    return _Stop(
        sent_before=before - start,
        sent_after=count - before,
        rate=(before - counted) / (click - begun),
        answer_seconds=answer - click,
        last_seconds=last - answer,
        ended_seconds=ended - answer,
    )


def _reached(sink: Sink, count: int) -> tuple[float, int]:
    """Waits until the sink has counted this many. Returns the time, and the count."""
    while (counted := sink.count) < count:
        time.sleep(_LOOK_SECONDS)
    return time.monotonic(), counted


def _post(staff: "Client", act: str, notification_id: str, told: str, **form: str) -> None:
    from django.urls import reverse

    address = reverse(f"admin:notification_{act}", args=[notification_id])
    answer = staff.post(address, form, follow=True)
    if told not in answer.content.decode():
        raise RuntimeError(f"the page does not contain “{told}”: {answer.status_code}")
