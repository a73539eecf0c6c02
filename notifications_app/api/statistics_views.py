"""The channel's statistics by hour or day, for programs with an API key."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn, cast, get_args
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import ReadingView, own_channel
from channels_app.models import Channel, Scope
from channels_app.selectors import ChannelNotFound
from notifications_app.reporting.hand_overs import MOST_READ, HandOvers, hand_overs
from notifications_app.reporting.statistics import Series, Statistics, statistics_of
from notifications_app.states import APART
from pushsvc.common.errors import FieldError, Invalid, MissingScope
from pushsvc.common.http.fields import Choice, StrictSerializer, Timestamp
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.periods import Period, Unit, period_between
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp

INTERVALS: Final[tuple[Unit, ...]] = get_args(Unit)
MOST_STEPS: Final = 2_000
_LAST: Final[Mapping[Unit, timedelta]] = {"hour": timedelta(days=1), "day": timedelta(days=30)}
_OUTCOMES: Final = ("recipients", "delivered", "bounced", *APART, "deferred", "clicked")
_CHANGES: Final = ("gained", "lost")
_AT: Final = "2026-11-20T15:00:00.000Z"
_EXAMPLE: Final = {
    "outcomes": [
        {
            "at": _AT,
            "platform": "web",
            "recipients": 1200,
            "delivered": 1180,
            "bounced": 20,
            "stopped": 0,
            "opted_out": 1,
            "expired": 4,
            "deferred": 3,
            "clicked": 96,
        }
    ],
    "subscribers": [{"at": _AT, "platform": "web", "gained": 14, "lost": 5}],
    "notifications": [{"at": _AT, "sent": 2}],
    "hand_over": [
        {
            "at": _AT,
            "which": "first",
            "p50_seconds": 0.412,
            "p95_seconds": 0.981,
            "notifications": 2,
        },
        {
            "at": _AT,
            "which": "last",
            "p50_seconds": 2.73,
            "p95_seconds": 4.02,
            "notifications": 2,
        },
    ],
}


class StatisticsQuery(StrictSerializer):
    """Which hours or days, and of which platforms."""

    refuse_unknown = False
    never_null = frozenset({"from", "to", "interval", "platform"})

    vars()["from"] = Timestamp(
        required=False,
        help_text="A time in the first hour or day. Default: 24 hours, or 30 days, before `to`.",
    )
    to = Timestamp(
        required=False,
        help_text="The end: the hour or day in which it lies is the last one, unless it begins"
        " with it. Default, and at most: now.",
    )
    interval = Choice(INTERVALS, default="hour", help_text="Whole hours or days of UTC.")
    platform = Choice(
        PLATFORM_VALUES,
        required=False,
        help_text="`outcomes` and `subscribers` of this platform alone.",
    )


class OutcomesOutput(serializers.Serializer[Any]):
    """The recipients of one platform in one hour or day."""

    at = Timestamp(help_text="When the hour or day begins.")
    platform = serializers.ChoiceField(PLATFORM_VALUES, help_text="The platform.")
    recipients = serializers.IntegerField(help_text="Recipients that were planned.")
    delivered = serializers.IntegerField(help_text="Recipients that were delivered.")
    bounced = serializers.IntegerField(help_text="Recipients that bounced.")
    stopped = serializers.IntegerField(help_text="Of `bounced`: their notification was stopped.")
    opted_out = serializers.IntegerField(help_text="Of `bounced`: they refused the category.")
    expired = serializers.IntegerField(help_text="Of `bounced`: not delivered in time.")
    deferred = serializers.IntegerField(help_text="How often a recipient had to be retried.")
    clicked = serializers.IntegerField(help_text="Recipients that clicked first.")


class SubscribersOutput(serializers.Serializer[Any]):
    """How the subscribers of one platform changed in one hour or day."""

    at = Timestamp(help_text="When the hour or day begins.")
    platform = serializers.ChoiceField(PLATFORM_VALUES, help_text="The platform.")
    gained = serializers.IntegerField(help_text="New subscribers, and those who came back.")
    lost = serializers.IntegerField(help_text="Subscribers that ended.")


class SentOutput(serializers.Serializer[Any]):
    """The notifications that were sent in one hour or day."""

    at = Timestamp(help_text="When the hour or day begins.")
    sent = serializers.IntegerField(help_text="Notifications that became `sent`.")


class HandOverOutput(serializers.Serializer[Any]):
    """How long after their time the notifications that ended in one hour or day were handed over
    to push services."""

    at = Timestamp(help_text="When the hour or day begins.")
    which = serializers.ChoiceField(
        ["first", "last"],
        help_text="`first`: until the first delivery. `last`: until every recipient had an"
        " outcome.",
    )
    p50_seconds = serializers.FloatField(help_text="Half of the notifications took at most this.")
    p95_seconds = serializers.FloatField(help_text="95 % of them took at most this.")
    notifications = serializers.IntegerField(
        help_text="Notifications with a delivery that were neither paused nor stopped."
    )


class StatisticsOutput(serializers.Serializer[Any]):
    """Sums of each hour or day, oldest first."""

    outcomes = OutcomesOutput(many=True, help_text="For each hour or day, and platform.")
    subscribers = SubscribersOutput(many=True, help_text="For each hour or day, and platform.")
    notifications = SentOutput(many=True, help_text="For each hour or day.")
    hand_over = HandOverOutput(
        many=True,
        help_text="Two entries for each hour or day in which such notifications ended. Only of the"
        f" newest hours or days in which together at most {MOST_READ:,} notifications were sent.",
    )


class StatisticsView(ReadingView):
    @extend_schema(
        operation_id="get_channel_time_series",
        summary="Read the channel's statistics by hour or day",
        description="Exact, and as of now, without the tests that staff sent. The sums over all"
        " hours and these tests are the totals of `GET /channel/:id`. At most"
        f" {MOST_STEPS:,} hours or days in a response. See docs/statistics.md.",
        tags=["channel"],
        parameters=[StatisticsQuery],
        responses={
            200: OpenApiResponse(
                StatisticsOutput, "Each hour or day.", [OpenApiExample("An hour", value=_EXAMPLE)]
            ),
            **problem_responses(400, 401, MissingScope(Scope.READ), ChannelNotFound(), 429, 503),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        asked = StatisticsQuery.checked(request.query_params.dict())
        of = _period(asked, sql.now())
        platforms = [Platform(asked["platform"])] if "platform" in asked else list(Platform)
        return Response(_read(channel, of, platforms) if of else _EMPTY)


_EMPTY: Final[Mapping[str, Any]] = {
    name: [] for name in ("outcomes", "subscribers", "notifications", "hand_over")
}


def _period(asked: Mapping[str, Any], now: datetime) -> Period | None:
    """None if it has not begun. Raises Invalid."""
    unit, to = cast(Unit, asked["interval"]), asked.get("to", now)
    until = min(to, now)
    since = asked.get("from") or _before(to, _LAST[unit])
    if "to" in asked and since >= to:
        _refuse("to", "Must be later than `from`.")
    if since >= until:
        return None
    of = period_between(since, until, unit, most=MOST_STEPS)
    if of is None:
        _refuse("from", f"Must be at most {MOST_STEPS:,} {unit}s before `to`.")
    return of


def _before(moment: datetime, by: timedelta) -> datetime:
    try:
        return moment - by
    except OverflowError:
        _refuse("to", "Must not be in the year 1.")


def _refuse(name: str, detail: str) -> NoReturn:
    raise Invalid([FieldError(name, "out_of_range", detail)])


def _read(channel: Channel, of: Period, platforms: Sequence[Platform]) -> dict[str, Any]:
    own = Channel.objects.filter(pk=channel.pk)
    found = statistics_of(own, of)
    # Plain values, because a serializer takes ten times as long for thousands of entries.
    at = [format_timestamp(start) for start in of.starts]
    return {
        "outcomes": list(_by_platform(at, found.platform_outcomes, platforms, _OUTCOMES)),
        "subscribers": list(_by_platform(at, found.platform_changes, platforms, _CHANGES)),
        "notifications": [
            {"at": start, "sent": sent}
            for start, sent in zip(at, found.notifications_sent.entries, strict=True)
        ],
        "hand_over": list(_hand_over(hand_overs(own, found), found)),
    }


def _by_platform(
    at: Sequence[str],
    series: Mapping[Platform, Series[Any]],
    platforms: Sequence[Platform],
    names: Sequence[str],
) -> Iterator[dict[str, Any]]:
    for index, start in enumerate(at):
        for platform in platforms:
            entry = series[platform].entries[index]
            counts = {name: getattr(entry, name) for name in names}
            yield {"at": start, "platform": platform, **counts}


def _hand_over(
    by_start: Mapping[datetime, HandOvers], found: Statistics
) -> Iterator[dict[str, Any]]:
    for start in found.period.starts:
        if each := by_start.get(start):
            for which, taken in (("first", each.first), ("last", each.last)):
                yield {
                    "at": format_timestamp(start),
                    "which": which,
                    "p50_seconds": round(taken.p50, 3),
                    "p95_seconds": round(taken.p95, 3),
                    "notifications": each.notifications,
                }
