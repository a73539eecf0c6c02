"""The filters of the list of notifications."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.audit import key_names
from channels_app.console.access import channels_of
from channels_app.console.lists import ChannelFilter, WithinFilter
from notifications_app import selectors
from notifications_app.models import Template
from notifications_app.reporting.bounce_reasons import APART_WORDS
from notifications_app.states import NotificationStatus
from pushsvc.common.console.admin import DropdownFilter
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.ids import parse_uuid
from pushsvc.common.periods import SPAN_NAMES, span
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.store import sql
from pushsvc.common.texts import later
from subscriptions_app.models import Segment

NO_ID: Final = UUID(int=0)  # of no row


class QuestionFilter(DropdownFilter):
    """Common questions of staff."""

    title = later("question")
    parameter_name = "show"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("running", gettext("What is running now?")),
            ("scheduled", gettext("What is scheduled?")),
            ("bounces", gettext("Where did over 10 % bounce?")),
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
    """How notifications were sent. No figure counts tests."""

    title = later("kind")
    parameter_name = "kind"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("send", gettext("Without tests")),
            ("campaign", gettext("Campaigns: to everybody, a segment or by conditions")),
            ("direct", gettext("Direct: to people or subscribers by id")),
            ("scheduled", gettext("Sent by a schedule")),
            ("test", gettext("Tests only")),
        ]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "send":
                return queryset.filter(only_subscription_id__isnull=True)
            case "campaign":
                return selectors.campaigns(queryset)
            case "direct":
                return queryset.filter(has_targets=True)
            case "scheduled":
                return selectors.sent_by_schedule(queryset)
            case "test":
                return queryset.filter(only_subscription_id__isnull=False)
        return queryset


class _ValueFilter(DropdownFilter):
    """Filters by a value that one of the newest notifications has."""

    lookup: str
    of: str  # the field of RecentValues

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(self.names(getattr(_recent_values(request), self.of)).items())

    @override
    def has_output(self) -> bool:
        """Also if only the address has a value. Otherwise the list would not be filtered by it."""
        return bool(self.lookup_choices or self.value())

    def names(self, values: Sequence[Any]) -> dict[str, str]:
        """By their values in the address, the names of the values."""
        return {each: each for each in values}

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{self.lookup: self.parse(value)}) if value else queryset

    def parse(self, value: str) -> Any:
        return value


class LabelFilter(_ValueFilter):
    title, parameter_name = "label", "label"
    lookup, of = "labels__contains", "labels"

    @override
    def parse(self, value: str) -> Any:
        return [value]


class AuthorFilter(_ValueFilter):
    """Who sent it: staff, or an API key."""

    title, parameter_name = "author", "author"
    lookup, of = "sent_by", "authors"

    @override
    def names(self, values: Sequence[Any]) -> dict[str, str]:
        names = key_names(values)
        return {each: names.get(each, each) for each in values}


class _NamedRowFilter(_ValueFilter):
    """The value is the id of a row with a name."""

    model: type[Model]

    @override
    def names(self, values: Sequence[Any]) -> dict[str, str]:
        rows = self.model._default_manager.filter(pk__in=values) if values else []
        names = {str(row.pk): str(row) for row in rows}
        return dict(sorted(names.items(), key=lambda named: named[1].casefold()))

    @override
    def parse(self, value: str) -> Any:
        try:
            return parse_uuid(value)
        except ValueError:
            return NO_ID


class SegmentFilter(_NamedRowFilter):
    title, parameter_name = "segment", "segment"
    lookup, of, model = "segment_id", "segments", Segment


class TemplateFilter(_NamedRowFilter):
    title, parameter_name = "template", "template"
    lookup, of, model = "template_id", "templates", Template


class PlatformFilter(DropdownFilter):
    """Notifications that target the platform, alone or with others."""

    title = later("platform")
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

    title = later("recipients")
    parameter_name = "outcome"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("delivered", gettext("Some delivered")),
            ("bounced", gettext("Some bounced")),
            *(
                (code, gettext("Some %(lower)s") % {"lower": words.lower()})
                for code, (words, _) in APART_WORDS.items()
            ),
            ("clicked", gettext("Some clicked")),
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
        return [("", gettext("Any day"))]  # the admin shows no filter without choices

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


class SpanFilter(DropdownFilter):
    """Notifications that were or are due in a day, week or month of the reader's time zone."""

    title = later("day, week or month")
    parameter_name = "span"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(SPAN_NAMES.items())

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        name = self.value() or ""
        if name not in SPAN_NAMES:
            return queryset
        begin, end = span(sql.now(), name, reader_zone(request))
        return queryset.filter(scheduled_at__gte=begin, scheduled_at__lt=end)


class FromFilter(_DateFilter):
    title = later("day, from")
    parameter_name = "from"
    lookup = "scheduled_at__gte"


class UntilFilter(_DateFilter):
    title = later("day, until")
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


def _recent_values(request: HttpRequest) -> selectors.RecentValues:
    """Read once for all filters of a page."""
    kept: list[selectors.RecentValues] = vars(request).setdefault("_recent_values", [])
    if not kept:
        kept.append(selectors.recent_values(chosen_channels(request)))
    return kept[0]


def _platform(request: HttpRequest) -> str:
    return request.GET.get(PlatformFilter.parameter_name, "")
