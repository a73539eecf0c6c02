"""The list of notifications. The pages of one notification are in page.py and compose.py."""

from typing import Any, Final

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.access import may_anywhere
from channels_app.console.lists import ChannelFilter, ScopedAdmin, WithinFilter
from channels_app.console.pages import require
from channels_app.models import Role
from notifications_app import selectors
from notifications_app.admin import automations, dashboard, newsfeeds
from notifications_app.admin.actions import (
    CorrectAction,
    DuplicateAction,
    EndAction,
    PauseAction,
    ResendAction,
    ResumeAction,
    StopAction,
    WinnerAction,
)
from notifications_app.admin.best_hours import BestHoursPage
from notifications_app.admin.compare import CompareChart, ComparePage
from notifications_app.admin.compose.page import ComposeCheck, ComposePage, ComposeTest
from notifications_app.admin.compose.templates import (
    NewTemplatePage,
    RemoveAction,
    TemplateCheck,
    TemplatePage,
    TemplatesPage,
    UseAction,
)
from notifications_app.admin.credentials import CredentialCheckPage
from notifications_app.admin.deletion import DeletionPage
from notifications_app.admin.delivery_settings import DeliverySettingsPage
from notifications_app.admin.edit import EditPage
from notifications_app.admin.explaining import TryPart, WhyPart
from notifications_app.admin.export import ListDownload
from notifications_app.admin.filters import (
    AuthorFilter,
    FromFilter,
    KindFilter,
    LabelFilter,
    OutcomeFilter,
    PlatformFilter,
    QuestionFilter,
    SegmentFilter,
    SentWithinFilter,
    SpanFilter,
    TemplateFilter,
    UntilFilter,
    chosen_channels,
)
from notifications_app.admin.images import ChoosePart, ImageCheckPage, ImagesPage
from notifications_app.admin.labels import LabelsChart, LabelsPage
from notifications_app.admin.log import LogDownload
from notifications_app.admin.moving import MovePage
from notifications_app.admin.page import (
    ChartDownload,
    NotificationPage,
    ProgressPart,
    TestPart,
)
from notifications_app.admin.results import apart_of
from notifications_app.admin.scheduled import CalendarPage, audiences_of
from notifications_app.admin.schedules import (
    NewSchedulePage,
    RecurrencePart,
    ScheduleActs,
    SchedulePage,
    SchedulesPage,
)
from notifications_app.admin.segments import RemovePage
from notifications_app.admin.sorting import FEWEST_DELIVERED, SortFilter, sort_links, sort_of
from notifications_app.admin.states import state_of
from notifications_app.admin.subscribers import ExportPage, HistoryPage
from notifications_app.content.values import AudienceKind
from notifications_app.models import Notification
from notifications_app.reporting.activity import states_of
from notifications_app.reporting.bounce_reasons import APART_WORDS
from notifications_app.states import NotificationStatus
from pushsvc.common.console.admin import BoundedPaginator, badge
from pushsvc.common.console.figures import NOTHING, grouped, moment, percent, width
from pushsvc.common.ids import parse_uuid
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.quantities import share
from pushsvc.common.texts import later

EXPORT: Final = "notification_export"
LOOKED_AT: Final = 10_000  # newest notifications that the list and a search by words read


@admin.register(Notification)
class NotificationAdmin(ScopedAdmin):
    """Read-only: notifications are created on the compose page, and changed on their own pages."""

    compose_role = Role.WRITER
    row_page = NotificationPage
    row_name = "notification_id"
    change_list_template = "console/notifications/list.html"
    empty_help = later(
        "Notifications that are sent or scheduled, here or through the API, appear here."
    )
    first_row = later("write the first notification")
    list_before_template = "console/notifications/period.html"
    list_display = ("message", "channel", "to", "state", "progress", "clicked", "when", "compare")
    list_filter = (
        ChannelFilter,
        SortFilter,
        SpanFilter,
        FromFilter,
        UntilFilter,
        SentWithinFilter,
        QuestionFilter,
        KindFilter,
        LabelFilter,
        AuthorFilter,
        SegmentFilter,
        TemplateFilter,
        OutcomeFilter,
        PlatformFilter,
        "status",
    )
    list_select_related = ("channel",)
    search_fields = ("id",)
    search_help_text = later(
        "An id, or words of the name, title or text of the newest %(looked_at)s",
        looked_at=grouped(LOOKED_AT),
    )
    ordering = ("-id",)
    sortable_by = ()

    @admin.display(description=later("Notification"))
    def message(self, notification: Notification) -> str:
        test = badge(gettext("test"), "warn") if notification.is_test else ""
        labels = format_html_join("", " {}", ((badge(each),) for each in notification.labels or ()))
        return format_html("{} {}{}", str(notification)[:80], test, labels)

    @admin.display(description=later("To"))
    def to(self, notification: Notification) -> str:
        names = [(badge(PLATFORM_NAMES[p], p),) for p in notification.target_platforms]
        audience = _AUDIENCES.get(notification.audience_kind, "")
        segment = f" {audience}" if audience else ""
        words = '{}<span class="ps-notification-segment">{}</span>'
        return format_html(words, format_html_join(" ", "{}", names), segment)

    @admin.display(description=later("State"))
    def state(self, notification: Any) -> str:
        """With what `get_changelist_instance` sets."""
        return badge(*state_of(notification, notification.sending, timezone.now()))

    @admin.display(description=later("Delivered, bounced"))
    def progress(self, notification: Notification) -> str:
        if notification.started_at is None:
            return NOTHING
        of = notification.recipient_count
        delivered = share(notification.delivered_count, of)
        bounced = share(notification.undeliverable_count, of)
        apart = [(percent(each.share), each.words.lower()) for each in apart_of(notification)]
        return format_html(
            _PROGRESS,
            gettext("%(delivered)s of %(whole)s delivered")
            % {"delivered": grouped(notification.delivered_count), "whole": grouped(of)},
            width(delivered),
            width(bounced),
            percent(delivered),
            gettext("of %(whole)s") % {"whole": grouped(of)},
            percent(bounced),
            format_html_join("", _APART, apart),
        )

    @admin.display(description=later("Ended in this time"))
    def ended(self, notification: Any) -> str:
        """The outcomes as the dashboard counts them, for the chosen platform."""
        ended = notification.ended_since
        names = {"delivered": gettext("delivered"), "bounced": gettext("bounced")}
        always = [f"{grouped(ended[name])} {words}" for name, words in names.items()]
        apart = [
            f"{grouped(ended[code])} {words.lower()}"
            for code, (words, _) in APART_WORDS.items()
            if ended[code]
        ]
        return ", ".join(always + apart)

    @admin.display(description=later("Clicked"))
    def clicked(self, notification: Notification) -> str:
        if notification.started_at is None:
            return NOTHING
        rate = percent(share(notification.clicked_count, notification.delivered_count))
        return format_html(_CLICKED, grouped(notification.clicked_count), rate)

    @admin.display(description=later("When"))
    def when(self, notification: Notification) -> str:
        return moment(notification.scheduled_at)

    @admin.display(description=later("Compare"))
    def compare(self, notification: Notification) -> str:
        """A check box of the form above the list (console/notifications/list.html)."""
        if notification.started_at is None:
            return ""
        label = gettext("Compare “{}”").format(str(notification)[:80])
        return format_html(_COMPARE, notification.pk, label)

    @override
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        words = search_term.strip()
        try:
            return queryset.filter(id=parse_uuid(words)), False
        except ValueError:
            said = (
                Q(name__icontains=words) | Q(title__icontains=words) | Q(body__icontains=words)
                if words
                else Q()
            )
            return _bounded(request, queryset).filter(said), False

    @admin.display(description=later("To how many"))
    def audience(self, notification: Any) -> str:
        """The current size, which `get_changelist_instance` sets."""
        return str(notification.audience)

    @override
    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist: Any = super().get_changelist_instance(request)
        states = states_of(changelist.result_list)
        for each in changelist.result_list:
            each.sending = states.get(each.pk)
        changelist.sorts = sort_links(request, changelist)
        if _is_schedule(request):
            audiences = audiences_of(changelist.result_list)
            for each in changelist.result_list:
                each.audience = audiences[each.pk]
        return changelist

    @override
    def get_ordering(self, request: HttpRequest) -> tuple[Any, ...]:
        """As asked. Otherwise scheduled notifications: the soonest first; others: the newest
        first."""
        if sort := sort_of(request):
            return sort.order
        return ("scheduled_at", "id") if _is_schedule(request) else ("-id",)

    @override
    def get_list_display(self, request: HttpRequest) -> list[Any]:
        if _is_schedule(request):
            return ["when", "audience", "message", "channel", "to", "state"]
        shown: list[Any] = list(super().get_list_display(request))
        if WithinFilter.since(request) is not None:
            shown.insert(shown.index("progress"), "ended")
        return shown

    @override
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        more = {
            "may_write": may_anywhere(request.user, Role.WRITER),
            "tab": "notifications",
            "since": WithinFilter.since(request),
            "outcome": request.GET.get(OutcomeFilter.parameter_name),
            "sort": sort_of(request),
            "looked_at": LOOKED_AT,
            "fewest_delivered": FEWEST_DELIVERED,
        }
        return super().changelist_view(request, {**(extra_context or {}), **more})

    @override
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Redirects to the compose page."""
        require(may_anywhere(request.user, Role.WRITER), Role.WRITER)
        return HttpResponseRedirect(reverse("admin:notification_compose"))

    @override
    def get_urls(self) -> list[URLPattern]:
        one = "<uuid:notification_id>/"
        own = [
            self.page("best-hours/<uuid:channel_id>/", BestHoursPage, "channel_best_hours"),
            self.page("delivery/<uuid:channel_id>/", DeliverySettingsPage, "channel_delivery"),
            self.page("delete-channel/<uuid:channel_id>/", DeletionPage, "channel_deletion"),
            self.page("calendar/", CalendarPage, "notification_calendar"),
            self.page("labels/", LabelsPage, "notification_labels"),
            self.page("labels/chart.csv", LabelsChart, "notification_labels_chart"),
            self.page("compare/", ComparePage, "notification_compare"),
            self.page("compare/chart.csv", CompareChart, "notification_compare_chart"),
            self.page("compose/", ComposePage, "notification_compose"),
            self.page("compose/check/", ComposeCheck, "notification_compose_check"),
            self.page("compose/image/", ImageCheckPage, "notification_image_check"),
            self.page("images/<uuid:channel_id>/", ImagesPage, "channel_images"),
            self.page("images/<uuid:channel_id>/choose/", ChoosePart, "images_choose"),
            self.page("compose/test/", ComposeTest, "notification_compose_test"),
            self.page("compose/try/", TryPart, "notification_compose_try"),
            self.page("why/<uuid:channel_id>/", WhyPart, "notification_why"),
            self.page("export/notifications.csv", ListDownload, EXPORT),
            self.page(f"{one}chart.csv", ChartDownload, "notification_chart"),
            self.page(f"{one}progress/", ProgressPart, "notification_progress"),
            self.page(f"{one}test/", TestPart, "notification_test_part"),
            self.page(f"{one}duplicate/", DuplicateAction, "notification_duplicate"),
            self.page(f"{one}correct/", CorrectAction, "notification_correct"),
            self.page(f"{one}resend/", ResendAction, "notification_resend"),
            self.page(f"{one}edit/", EditPage, "notification_edit"),
            self.page(f"{one}end/", EndAction, "notification_end"),
            self.page(f"{one}move/", MovePage, "notification_move"),
            self.page(f"{one}pause/", PauseAction, "notification_pause"),
            self.page(f"{one}resume/", ResumeAction, "notification_resume"),
            self.page(f"{one}stop/", StopAction, "notification_stop"),
            self.page(f"{one}winner/", WinnerAction, "notification_winner"),
            self.page(f"{one}log.csv", LogDownload, "notification_log"),
            self.page(
                "credential-check/<uuid:channel_id>/",
                CredentialCheckPage,
                "channel_credential_check",
            ),
            self.page("history/<uuid:subscription_id>/", HistoryPage, "subscription_history"),
            self.page("export/<uuid:subscription_id>/", ExportPage, "subscription_export"),
            self.page("remove-segment/<uuid:segment_id>/", RemovePage, "segment_remove"),
        ]
        more = [*self._template_pages(), *self._schedule_pages(), *dashboard.pages()]
        more += [*automations.pages(self.page), *newsfeeds.pages(self.page)]
        return [*own, *more, *super().get_urls()]

    def _schedule_pages(self) -> list[URLPattern]:
        all_, one = "schedules/<uuid:channel_id>/", "schedules/<uuid:schedule_id>/"
        return [
            self.page(all_, SchedulesPage, "channel_schedules"),
            self.page(f"{all_}new/", NewSchedulePage, "schedule_new"),
            self.page(f"{all_}when/", RecurrencePart, "schedule_recurrence"),
            self.page(f"{one}edit/", SchedulePage, "schedule_edit"),
            self.page(f"{one}act/", ScheduleActs, "schedule_act"),
        ]

    def _template_pages(self) -> list[URLPattern]:
        all_, one = "templates/<uuid:channel_id>/", "templates/<uuid:template_id>/"
        return [
            self.page(all_, TemplatesPage, "channel_templates"),
            self.page(f"{all_}new/", NewTemplatePage, "template_new"),
            self.page(f"{all_}check/", TemplateCheck, "template_check"),
            self.page(f"{one}edit/", TemplatePage, "template_edit"),
            self.page(f"{one}use/", UseAction, "template_use"),
            self.page(f"{one}delete/", RemoveAction, "template_delete"),
        ]


def _is_schedule(request: HttpRequest) -> bool:
    """Whether the list shows only scheduled notifications."""
    return not _is_export(request) and request.GET.get("show") == "scheduled"


def _is_export(request: HttpRequest) -> bool:
    return request.resolver_match is not None and request.resolver_match.url_name == EXPORT


def _bounded(request: HttpRequest, notifications: QuerySet[Any]) -> QuerySet[Any]:
    """Rows that an index finds: unfinished notifications, or the newest of the user's channels.

    Without a filter they are as many as the pages show; with a filter, LOOKED_AT.
    """
    statuses = set(request.GET.getlist("status__exact"))  # of which each is shown
    is_open = bool(statuses) and statuses <= _OPEN_STATUSES
    if is_open or request.GET.get("show") in _UNFINISHED:
        return notifications
    is_filtered = any(request.GET.get(name) for name in _FILTERS) or _is_export(request)
    limit = LOOKED_AT if is_filtered else BoundedPaginator.most_rows
    return notifications.filter(id__in=selectors.newest_ids(chosen_channels(request), limit=limit))


_FILTERS: Final = (
    *(each.parameter_name for each in NotificationAdmin.list_filter[1:-1]),
    "status__exact",
    "q",
)
_UNFINISHED: Final = {"running", "scheduled"}
_AUDIENCES: Final = {
    AudienceKind.SEGMENT: later("in a segment"),
    AudienceKind.RULE: later("by conditions"),
    AudienceKind.TARGETS: later("by id"),
    AudienceKind.CORRECTION: later("as a correction"),
}
_OPEN_STATUSES: Final = {NotificationStatus.PENDING, NotificationStatus.PROCESSING}

_COMPARE: Final = '<input type="checkbox" name="id" value="{}" form="compare" aria-label="{}">'
_PROGRESS: Final = (
    '<span class="ps-bar ps-notification-bar" role="img" aria-label="{}"><i style="width:{}"></i>'
    '<i data-tone="bad" style="width:{}"></i></span>'
    '<small class="ps-notification-rates">{}<span class="ps-notification-of"> {}</span>'
    '<span class="ps-notification-bounced"> · {}</span>{}</small>'
)
_CLICKED: Final = '{} <small class="ps-notification-rates">{}</small>'
_APART: Final = '<span class="ps-notification-apart"> · {} {}</span>'
