"""The list of channels, a new one, and a channel's overview and settings."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils.html import format_html, format_html_join
from typing_extensions import override

from channels_app.accounts.access import accounts_of
from channels_app.admin.credentials import CredentialsPage, shown_facts
from channels_app.admin.forms import NewChannelForm, SettingsForm
from channels_app.admin.keys import KeysPage, RevokePage, SnippetPage, VapidPage
from channels_app.admin.tabs import TabPage
from channels_app.console.lists import ConsolePage, ScopedAdmin, list_url
from channels_app.models import Channel, Role
from channels_app.selectors import channel_credentials, channel_totals
from channels_app.services import channel_create, channel_update
from pushsvc.common.console.admin import badge
from pushsvc.common.console.figures import grouped, moment
from pushsvc.common.platforms import PLATFORM_NAMES, Platform

_SUBSCRIBERS = {name: f"counters__{name}_subscribers" for name in Platform}


@admin.register(Channel)
class ChannelAdmin(ScopedAdmin):
    """Its pages are our own; of the admin's only the list is used."""

    channel_path = ""
    add_role = Role.MANAGER
    list_display = ("name", "account", "platforms_shown", "subscribers", "made")
    list_select_related = ("account",)
    search_fields = ("name", "=id")
    search_help_text = "A part of the name, or the whole id."
    ordering = ("name", "id")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # A channel has at most a few shards, so that this sum is cheap.
        sums = {f"{name}_sum": Coalesce(Sum(path), 0) for name, path in _SUBSCRIBERS.items()}
        rows = super().get_queryset(request).annotate(**sums)
        first, *others = [F(name) for name in sums]
        with_sums: QuerySet[Any] = rows.annotate(subscriber_sum=sum(others, first))
        return with_sums

    @admin.display(description="Platforms")
    def platforms_shown(self, channel: Channel) -> str:
        on = [name for name, is_on in channel.platforms.items() if is_on]
        return format_html_join(" ", "{}", ((badge(PLATFORM_NAMES[name], name),) for name in on))

    @admin.display(description="Subscribers", ordering="subscriber_sum")
    def subscribers(self, channel: Any) -> str:
        """In all and, where there are several, by platform."""
        counts = {PLATFORM_NAMES[name]: getattr(channel, f"{name}_sum") for name in _SUBSCRIBERS}
        parts = [f"{name} {count:,}" for name, count in counts.items() if count]
        by_platform = " · ".join(parts) if len(parts) > 1 else ""
        return format_html(
            '{} <small class="ps-quiet">{}</small>', grouped(channel.subscriber_sum), by_platform
        )

    @admin.display(description="Made")
    def made(self, channel: Channel) -> str:
        return moment(channel.created_at)

    @override
    def get_urls(self) -> list[URLPattern]:
        own = [
            self.page("<uuid:channel_id>/credentials/", CredentialsPage, "channel_credentials"),
            self.page("<uuid:channel_id>/keys/", KeysPage, "channel_keys"),
            self.page(
                "<uuid:channel_id>/keys/<uuid:key_id>/revoke/", RevokePage, "channel_key_revoke"
            ),
            self.page("<uuid:channel_id>/web-push-key/", VapidPage, "channel_vapid"),
            self.page("<uuid:channel_id>/snippet/", SnippetPage, "channel_snippet"),
            self.page("<uuid:channel_id>/settings/", SettingsPage, "channel_settings"),
        ]
        return own + super().get_urls()

    @override
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        return self.show(NewChannelPage, request)

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        return self.show(OverviewPage, request, channel_id=object_id)


class NewChannelPage(ConsolePage):
    title = "New channel"
    template_name = "console/channels/form.html"
    role = Role.MANAGER

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = self._form(request.POST)
        if form.is_valid():
            with form.showing_faults():
                channel = channel_create(**form.cleaned_data)
                messages.success(
                    request, f"The channel “{channel}” was made. Add it to your site next."
                )
                return HttpResponseRedirect(reverse("admin:channel_snippet", args=[channel.pk]))
        return self.render_to_response(self.get_context_data(form=form), status=400)

    def _form(self, data: Any = None) -> NewChannelForm:
        accounts = accounts_of(self.request.user, Role.MANAGER).order_by("name")
        form = NewChannelForm(
            data, initial={"vapid_subject": settings.VAPID_SUBJECT, "account": accounts.first()}
        )
        form.fields["account"].queryset = accounts  # type: ignore[attr-defined] # a model's choices
        return form

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", self._form())
        return super().get_context_data(submit="Make the channel", **kwargs)


class OverviewPage(TabPage):
    title = "Overview"
    template_name = "console/channels/overview.html"
    tab = "channels_app_channel_change"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        totals = channel_totals(self.channel.pk)
        credentials = channel_credentials(self.channel.pk)
        sent = list_url("notifications_app_notification", self.channel.pk, status__exact="sent")
        platforms = [
            {
                "name": platform,
                "title": title,
                "is_enabled": self.channel.platforms[platform],
                "paused": (held := credentials.get(platform)) is not None and held.paused_at,
                "credential": held,
                "facts": shown_facts(held),
                "subscribers": getattr(totals, f"{platform}_subscribers"),
            }
            for platform, title in PLATFORM_NAMES.items()
        ]
        # Sums over all of the channel's notifications, running ones included.
        every = list_url("notifications_app_notification", self.channel.pk)
        figures = [
            {"title": "Notifications sent", "value": totals.notifications_sent, "url": sent},
            {"title": "Recipients", "value": totals.recipients, "url": every},
            {"title": "Delivered", "value": totals.delivered, "url": every},
            {"title": "Bounced", "value": totals.bounced, "url": every},
            {"title": "Clicked", "value": totals.clicked, "url": every},
        ]
        return super().get_context_data(platforms=platforms, figures=figures, **kwargs)


class SettingsPage(TabPage):
    title = "Settings"
    template_name = "console/channels/settings.html"
    tab = "channel_settings"
    post_role = Role.MANAGER

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = SettingsForm.of(self.channel, self._possible(), request.POST)
        if form.is_valid():
            with form.showing_faults():
                channel_update(channel_id=self.channel.pk, **form.cleaned_data)
                return self.back("The settings were saved.")
        return self.render_to_response(self.get_context_data(form=form), status=400)

    def _possible(self) -> list[str]:
        """Platforms that can be on: Android and iOS once they have credentials."""
        return [Platform.WEB.value, *sorted(channel_credentials(self.channel.pk))]

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", SettingsForm.of(self.channel, self._possible()))
        return super().get_context_data(**kwargs)
