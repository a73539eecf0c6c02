"""The console's list of segments, and a form that builds rules without JSON."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.access import channels_of
from channels_app.console.lists import ChannelFilter, ScopedAdmin
from channels_app.console.pages import ChannelPage, ConsolePage, id_or_404, own_or_404
from channels_app.models import Channel, Role
from pushsvc.common.console.figures import moment
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.errors import Busy, FieldError, Invalid, Outdated, PushsvcError
from pushsvc.common.http.strict_json import MalformedJSON, is_storable, loads_strict
from pushsvc.common.platforms import Platform
from pushsvc.common.texts import later
from subscriptions_app.admin.conditions import builder_context
from subscriptions_app.admin.segment_errors import shown_errors
from subscriptions_app.admin.segment_files import (
    SegmentFileLookPage,
    SegmentFilePage,
    SegmentFilePartPage,
)
from subscriptions_app.audiences.sizes import (
    Size,
    audience_size,
    segment_sample,
    segment_sizes,
)
from subscriptions_app.audiences.values import ValuesSeen, values_seen
from subscriptions_app.errors import NotificationNotFound
from subscriptions_app.models import MAX_SEGMENT_NAME, Segment
from subscriptions_app.segments.describe import on_clock, rule_text
from subscriptions_app.segments.rules import rule_errors
from subscriptions_app.segments.selectors import check_notifications
from subscriptions_app.segments.services import segment_create, segment_update

_SAMPLES = 10
_MOST_CHARACTERS = 64 * 1024
_COUNTED: Final = 50  # segments of a page of the list
_COUNTED_CHANNELS: Final = 4


class ChooseChannelPage(ConsolePage):
    """Asks for the channel of the new segment. Skipped if there is only one."""

    title = later("New segment")
    template_name = "console/segments/choose.html"
    role = Role.EDITOR

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        channels = channels_of(request.user, Role.EDITOR).order_by("name")
        own = list(channels[:2])
        if len(own) == 1:
            return HttpResponseRedirect(reverse("admin:segment_new", args=[own[0].pk]))
        return self.render_to_response(self.get_context_data(channels=channels[:200]))


class BuilderPage(ChannelPage):
    """The form with the name and the rule. `segments.js` writes the rule into it as JSON."""

    template_name = "console/segments/builder.html"
    post_role = Role.EDITOR

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        name = request.POST.get("name", "")
        rule = _parsed(request.POST.get("rule", ""))
        try:
            segment = self.save(name, rule)
        except PushsvcError as error:
            context = self.get_context_data(name=name, rule=rule, **_refusal(error, rule))
            return self.render_to_response(context, status=400)
        messages.success(
            request, gettext("The segment “%(name)s” was saved.") % {"name": segment.name}
        )
        return HttpResponseRedirect(
            reverse("admin:subscriptions_app_segment_change", args=[segment.pk])
        )

    def save(self, name: str, rule: object) -> Segment:
        """Saves the segment. Raises what the service raises."""
        raise NotImplementedError

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("name", "")
        kwargs.setdefault("rule", None)
        offered = builder_context(self.channel.pk)
        return super().get_context_data(
            known=offered["known"] | {"rule": kwargs.pop("rule")},
            tags=offered["tags"],
            has_more_tags=offered["has_more_tags"],
            most_characters=MAX_SEGMENT_NAME,
            may_edit=self.may(Role.EDITOR),
            may_manage=self.may(Role.MANAGER),
            may_write=self.may(Role.WRITER),
            **kwargs,
        )


@dataclass(frozen=True, slots=True)
class Start:
    """A rule with which a new segment can begin."""

    key: str
    name: str
    rule: Any


_LATELY: Final = {"field": "last_clicked_at", "operator": "gte", "value": {"days_ago": 30}}
STARTS: Final = (
    Start("never", later("Never clicked"), {**_LATELY, "operator": "exists", "value": False}),
    Start("clicked", later("Clicked in the last 30 days"), _LATELY),
    Start("idle", later("Did not click in the last 30 days"), {"not": _LATELY}),
)


class NewSegmentPage(BuilderPage):
    """The query parameter `start` names a rule with which it begins."""

    title = later("New segment")
    role = Role.EDITOR

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        start = next((each for each in STARTS if each.key == self.request.GET.get("start")), None)
        if start and self.request.method == "GET":
            kwargs = {"name": start.name, "rule": start.rule} | kwargs
        return super().get_context_data(starts=STARTS, **kwargs)

    @override
    def save(self, name: str, rule: object) -> Segment:
        return segment_create(channel=self.channel, name=name, rule=rule)


class SegmentPage(BuilderPage):
    title = later("Segment")
    segment: Segment
    version: str  # the one that the user saw

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.segment = own_or_404(Segment, request, kwargs["segment_id"])
        self.version = self.segment.version
        return self.segment.channel

    @override
    def save(self, name: str, rule: object) -> Segment:
        self.version = self.request.POST.get("version", "")
        own = {"channel_id": self.channel.pk, "segment_id": self.segment.pk}
        try:
            return segment_update(**own, name=name, rule=rule, seen=self.version)
        except Outdated:
            self.segment = own_or_404(Segment, self.request, self.segment.pk)
            self.version = self.segment.version
            raise

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("name", self.segment.name)
        kwargs.setdefault("rule", self.segment.rule)
        own = {"segment": self.segment, "heading": self.segment.name, "version": self.version}
        return super().get_context_data(**own, **kwargs)


class PreviewPage(ChannelPage):
    """POST only, with `rule`: returns its size and examples as a fragment. Stores nothing."""

    title = later("Preview")
    template_name = "console/segments/preview.html"
    http_method_names = ("post",)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        rule = _parsed(request.POST.get("rule", ""))
        errors = rule_errors(rule) or _unknown_notifications(self.channel.pk, rule)
        if errors:
            return self.render_to_response({"errors": shown_errors(errors, rule)})
        words = rule_text(on_clock(rule, reader_zone(request)))
        return self.render_to_response({"words": words, **_shown(self.channel.pk, rule)})


class ValuesPage(ChannelPage):
    """The most frequent values of the query's `subject`, as JSON: text, and how many devices have
    it. `name`: of an attribute. Empty if the account runs too many estimates at once."""

    title = later("Values")
    http_method_names = ("get", "head")

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> JsonResponse:
        subject, name = request.GET.get("subject", ""), request.GET.get("name", "")
        seen = ValuesSeen({}, estimated=False)
        if is_storable(name):
            with suppress(Busy):
                seen = values_seen(self.channel.pk, subject, name)
        values = [{"value": value, "devices": count} for value, count in seen.devices.items()]
        return JsonResponse({"values": values, "is_estimated": seen.estimated})


class SizesPage(ConsolePage):
    """The sizes of the segments that the query names, for the list, which loads them after its
    rows. One read of the sample for each channel, and of at most _COUNTED_CHANNELS."""

    title = later("Segments")
    template_name = "console/segments/sizes.html"
    http_method_names = ("get", "head")

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        ids = [id_or_404(text) for text in self.request.GET.getlist("id")[:_COUNTED]]
        seen = Segment.objects.filter(channel__in=channels_of(self.request.user), pk__in=ids)
        own = list(seen.order_by("-updated_at", "-id"))
        by_channel: defaultdict[UUID, list[Segment]] = defaultdict(list)
        for segment in own:
            by_channel[segment.channel_id].append(segment)
        sizes: dict[UUID, Size | None] = dict.fromkeys(each.pk for each in own)
        for channel_id, segments in islice(by_channel.items(), _COUNTED_CHANNELS):
            with suppress(Busy):
                found = segment_sizes(channel_id, [each.rule for each in segments])
                sizes |= {each.pk: size for each, size in zip(segments, found, strict=True)}
        return {"sizes": sizes.items()}


def _unknown_notifications(channel_id: UUID, rule: Any) -> list[FieldError]:
    try:
        check_notifications(channel_id, rule)
    except NotificationNotFound as error:
        return error.errors
    return []


def _shown(channel_id: UUID, rule: Any) -> dict[str, Any]:
    sizes = audience_size(channel_id, rule, Platform)
    return {
        "sizes": [(platform, each) for platform, each in sizes.items()],
        "total": sum(each.size for each in sizes.values()),
        "is_estimated": any(each.estimated for each in sizes.values()),
        "samples": segment_sample(channel_id, rule, limit=_SAMPLES),
    }


def _parsed(text: str) -> Any:
    """The form's rule. None, which is not a valid rule, if it is not JSON."""
    try:
        return loads_strict(text[:_MOST_CHARACTERS].encode())
    except MalformedJSON:
        return None


def _refusal(error: PushsvcError, rule: object) -> dict[str, Any]:
    """The context with the error's texts: for the form, for the name, and for the conditions."""
    if not isinstance(error, Invalid):
        return {"is_refused": True, "problem": error.detail}
    in_name = [field_error.detail for field_error in error.errors if field_error.attr == "name"]
    in_rule = [field_error for field_error in error.errors if field_error.attr != "name"]
    return {
        "is_refused": True,
        "name_error": " ".join(map(str, in_name)),
        "errors": shown_errors(in_rule, rule),
    }


@admin.register(Segment)
class SegmentAdmin(ScopedAdmin):
    add_role = Role.EDITOR
    new_page = ChooseChannelPage
    row_page = SegmentPage
    row_name = "segment_id"
    first_row = later("make the first segment")
    list_display = ("name", "channel", "rule_shown", "size", "changed")
    list_before_template = "console/segments/load_sizes.html"
    list_display_links = ("name",)
    list_filter = (ChannelFilter,)
    list_select_related = ("channel",)
    search_fields = ("name", "=id")
    search_help_text = later("Part of the name, or the whole id.")
    ordering = ("-updated_at", "-id")

    @admin.display(description=later("Who is in it"))
    def rule_shown(self, segment: Any) -> str:
        """With the zone that `get_changelist_instance` sets."""
        text = rule_text(on_clock(segment.rule, segment.zone))
        return text if len(text) <= 120 else f"{text[:119]}…"

    @admin.display(description=later("Subscribers"))
    def size(self, segment: Segment) -> str:
        """The place of the size, which SizesPage fills after the list is shown."""
        return format_html('<span id="size-{}">…</span>', segment.pk)

    @admin.display(description=later("Changed"))
    def changed(self, segment: Segment) -> str:
        return moment(segment.updated_at)

    @override
    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        for each in changelist.result_list:
            each.zone = reader_zone(request)
        return changelist

    @override
    def get_urls(self) -> list[URLPattern]:
        own = [
            self.page("new/<uuid:channel_id>/", NewSegmentPage, "segment_new"),
            self.page("sizes/", SizesPage, "segment_sizes"),
            self.page("file/<uuid:channel_id>/", SegmentFilePage, "segment_file"),
            self.page("file/<uuid:channel_id>/look/", SegmentFileLookPage, "segment_file_look"),
            self.page("file/<uuid:channel_id>/part/", SegmentFilePartPage, "segment_file_part"),
            self.page("values/<uuid:channel_id>/", ValuesPage, "segment_values"),
            self.page("preview/<uuid:channel_id>/", PreviewPage, "segment_preview"),
        ]
        return own + super().get_urls()
