"""The filters of the list of notifications."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from typing_extensions import override

from channels_app.console.access import channels_of
from channels_app.console.lists import ChannelFilter, WithinFilter
from notifications_app import selectors
from notifications_app.reporting.bounce_reasons import APART_WORDS
from notifications_app.states import NotificationStatus
from pushsvc.common.console.admin import DropdownFilter
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.platforms import PLATFORM_NAMES


class QuestionFilter(DropdownFilter):
    """Common questions of staff."""

    title = "question"
    parameter_name = "show"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("running", "What is running now?"),
            ("scheduled", "What is scheduled?"),
            ("bounces", "Where did over 10 % bounce?"),
        ]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "running":
                return queryset.filter(status=NotificationStatus.PROCESSING)
            case "scheduled":
                return queryset.filter(status=NotificationStatus.PENDING)
            case "bounces":
                return selectors.with_many_bounces(queryset)
        return queryset


class KindFilter(DropdownFilter):
    """Sends, or tests, which no figure counts."""

    title = "kind"
    parameter_name = "kind"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("send", "Without tests"), ("test", "Tests only")]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in {"send", "test"}:
            return queryset
        return queryset.filter(only_subscription_id__isnull=self.value() == "send")


class LabelFilter(DropdownFilter):
    """Notifications with a label of one of the newest."""

    title = "label"
    parameter_name = "label"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(each, each) for each in selectors.recent_labels(chosen_channels(request))]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        label = self.value()
        return queryset.filter(labels__contains=[label]) if label else queryset


class PlatformFilter(DropdownFilter):
    """Notifications that target the platform, alone or with others."""

    title = "platform"
    parameter_name = "platform"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(PLATFORM_NAMES.items())

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        platform = self.value()
        return queryset.filter(target_platforms__contains=[platform]) if platform else queryset


class SentWithinFilter(WithinFilter):
    """Notifications that were being sent at some time in the period, with their outcomes in it."""

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        since = self.since(request)
        if since is None:
            return queryset
        return selectors.notifications_sent_since(queryset, since, platform=_platform(request))


class OutcomeFilter(DropdownFilter):
    """Notifications with recipients of the chosen outcome, in the chosen period and on the chosen
    platform. A click counts at any time and on any platform."""

    title = "recipients"
    parameter_name = "outcome"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("delivered", "Some delivered"),
            ("bounced", "Some bounced"),
            *((code, f"Some {words.lower()}") for code, (words, _) in APART_WORDS.items()),
            ("clicked", "Some clicked"),
        ]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        outcome = self.value()
        if outcome == "clicked":
            return queryset.filter(clicked_count__gt=0)
        if outcome not in selectors.ENDED:
            return queryset
        since, platform = WithinFilter.since(request), _platform(request)
        return selectors.notifications_with_outcome(
            queryset, outcome=outcome, since=since, platform=platform
        )


class _DateFilter(DropdownFilter):
    """Filters by the day of the reader's time zone on which notifications are or were due."""

    template = "console/parts/filter_day.html"
    lookup: str
    offset = timedelta()

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("", "Any day")]  # the admin shows no filter without choices

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.value():
            return queryset
        try:
            day = date.fromisoformat(self.value() or "") + self.offset
            begin = datetime.combine(day, time(), reader_zone(request)).astimezone(UTC)
            return queryset.filter(**{self.lookup: begin})
        except (ValueError, OverflowError):
            return queryset.none()


class FromFilter(_DateFilter):
    title = "day, from"
    parameter_name = "from"
    lookup = "scheduled_at__gte"


class UntilFilter(_DateFilter):
    title = "day, until"
    parameter_name = "until"
    lookup = "scheduled_at__lt"
    offset = timedelta(days=1)


def chosen_channels(request: HttpRequest) -> list[UUID] | None:
    """The user's channels, or the chosen one of them. None means all channels."""
    chosen = request.GET.get(ChannelFilter.parameter_name, "").lower()
    if request.user.is_superuser and not chosen:
        return None
    own = channels_of(request.user).values_list("id", flat=True)
    return [each for each in own if not chosen or str(each) == chosen]


def _platform(request: HttpRequest) -> str:
    return request.GET.get(PlatformFilter.parameter_name, "")
