"""The list of channels, a new one, and a channel's overview and settings."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.credentials import CredentialsPage, shown_facts
from channels_app.admin.forms import NewChannelForm, SettingsForm
from channels_app.admin.keys import KeysPage, RevokePage, SnippetPage, VapidPage
from channels_app.admin.prompts import PromptPage
from channels_app.admin.tabs import SettingsTab, TabPage
from channels_app.admin.webhooks import WebhookPage, WebhooksPage
from channels_app.console.access import accounts_of, is_superuser
from channels_app.console.lists import ScopedAdmin, list_url
from channels_app.console.pages import FormPage
from channels_app.models import Channel, Role
from channels_app.selectors import channel_credentials, channel_totals
from channels_app.services import channel_create, channel_update
from pushsvc.common.console.admin import badge
from pushsvc.common.console.figures import grouped, moment
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.texts import later

_SUBSCRIBERS = {name: f"counters__{name}_subscribers" for name in Platform}


class NewChannelPage(FormPage):
    title = later("New channel")
    submit = later("Create the channel")
    role = Role.MANAGER

    @override
    def accept(self, form: NewChannelForm) -> HttpResponseBase:
        may_exceed = is_superuser(self.request.user)
        channel = channel_create(may_exceed=may_exceed, **form.cleaned_data)
        text = gettext("The channel “%(channel)s” was created. Next, add it to your site.") % {
            "channel": channel
        }
        messages.success(self.request, text)
        return HttpResponseRedirect(reverse("admin:channel_snippet", args=[channel.pk]))

    @override
    def make_form(self, data: QueryDict | None = None) -> NewChannelForm:
        accounts = accounts_of(self.request.user, Role.MANAGER).order_by("name")
        form = NewChannelForm(
            data, initial={"vapid_subject": _contact(self.staff), "account": accounts.first()}
        )
        form.fields["account"].queryset = accounts  # type: ignore[attr-defined] # a model's choices
        return form


def _contact(user: User) -> str:
    """Where push services reach the channel's owner: the installation's address, unless it is the
    example; otherwise the user's, "" if it is unknown."""
    if settings.VAPID_SUBJECT != settings.DEFAULT_VAPID_SUBJECT:
        return settings.VAPID_SUBJECT
    return f"mailto:{user.email}" if user.email else ""


class OverviewPage(TabPage):
    title = later("Overview")
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
        # Sums over all notifications of the channel, with running ones and tests, as in the API.
        every = list_url("notifications_app_notification", self.channel.pk)
        figures = [
            {
                "title": gettext("Notifications sent"),
                "value": totals.notifications_sent,
                "url": sent,
            },
            {"title": gettext("Recipients"), "value": totals.recipients, "url": every},
            {"title": gettext("Delivered"), "value": totals.delivered, "url": every},
            {"title": gettext("Not delivered"), "value": totals.bounced, "url": every},
            {"title": gettext("Clicked"), "value": totals.clicked, "url": every},
        ]
        return super().get_context_data(platforms=platforms, figures=figures, **kwargs)


class SettingsPage(SettingsTab):
    title = later("Settings")
    template_name = "console/channels/settings.html"
    tab = "channel_settings"

    @override
    def accept(self, form: SettingsForm) -> HttpResponseBase:
        may_raise = is_superuser(self.request.user)
        channel_update(channel_id=self.channel.pk, may_raise=may_raise, **form.cleaned_data)
        return self.back(gettext("The settings were saved."))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(may_delete=self.may(Role.OWNER), **kwargs)

    @override
    def make_form(self, data: QueryDict | None = None) -> SettingsForm:
        # Android and iOS can be enabled once they have credentials.
        possible = [Platform.WEB.value, *sorted(channel_credentials(self.channel.pk))]
        return SettingsForm.of(self.channel, possible, data)


@admin.register(Channel)
class ChannelAdmin(ScopedAdmin):
    """Uses only the list of Django's admin. All other pages are pages of this app."""

    add_role = Role.MANAGER
    first_row = later("create the first channel")
    new_page = NewChannelPage
    row_page = OverviewPage
    row_name = "channel_id"
    list_display = ("name_shown", "account", "platforms_shown", "subscribers", "created")
    list_select_related = ("account",)
    search_fields = ("name", "=id")
    search_help_text = later("Part of the name, or the whole id.")
    ordering = ("name", "id")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # A channel has only a few shards, so this sum is cheap.
        sums = {f"{name}_sum": Coalesce(Sum(path), 0) for name, path in _SUBSCRIBERS.items()}
        rows = super().get_queryset(request).annotate(**sums)
        first, *others = [F(name) for name in sums]
        with_sums: QuerySet[Any] = rows.annotate(subscriber_sum=sum(others, first))
        return with_sums

    @admin.display(description=later("Name"), ordering="name")
    def name_shown(self, channel: Channel) -> str:
        mark = badge(gettext("being deleted"), "bad") if channel.is_to_be_deleted else ""
        return format_html("{} {}", channel.name, mark) if mark else channel.name

    @admin.display(description=later("Platforms"))
    def platforms_shown(self, channel: Channel) -> str:
        on = [name for name, is_on in channel.platforms.items() if is_on]
        return format_html_join(" ", "{}", ((badge(PLATFORM_NAMES[name], name),) for name in on))

    @admin.display(description=later("Subscribers"), ordering="subscriber_sum")
    def subscribers(self, channel: Any) -> str:
        """The total and, if there are several platforms, the count of each."""
        counts = {PLATFORM_NAMES[name]: getattr(channel, f"{name}_sum") for name in _SUBSCRIBERS}
        parts = [f"{name} {grouped(count)}" for name, count in counts.items() if count]
        by_platform = " · ".join(parts) if len(parts) > 1 else ""
        return format_html(
            '{} <small class="ps-quiet">{}</small>', grouped(channel.subscriber_sum), by_platform
        )

    @admin.display(description=later("Created"))
    def created(self, channel: Channel) -> str:
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
            self.page("<uuid:channel_id>/webhooks/", WebhooksPage, "channel_webhooks"),
            self.page(
                "<uuid:channel_id>/webhooks/<uuid:webhook_id>/", WebhookPage, "channel_webhook"
            ),
            self.page("<uuid:channel_id>/snippet/", SnippetPage, "channel_snippet"),
            self.page("<uuid:channel_id>/prompt/", PromptPage, "channel_prompt"),
            self.page("<uuid:channel_id>/settings/", SettingsPage, "channel_settings"),
        ]
        return own + super().get_urls()
