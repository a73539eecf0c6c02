"""What the pages of one channel share: the heading, the tabs, and the user's rights."""

from typing import Any, ClassVar

from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.urls import reverse
from typing_extensions import override

from channels_app.console.access import may
from channels_app.console.pages import ChannelPage
from channels_app.console.shared_forms import SharedFormPage
from channels_app.models import Channel, Role
from channels_app.selectors import ChannelNotFound, channel_locked
from pushsvc.common.texts import later

_TABS = {
    "channels_app_channel_change": later("Overview"),
    "channel_best_hours": later("Best hours"),
    "channel_credentials": later("Credentials"),
    "channel_keys": later("API keys"),
    "channel_snippet": later("Add to a site"),
    "channel_prompt": later("Prompt"),
    "channel_devices": later("Test devices"),
    "channel_templates": later("Templates"),
    "channel_schedules": later("Schedules"),
    "channel_automations": later("Automations"),
    "channel_newsfeeds": later("Newsfeeds"),
    "channel_images": later("Images"),
    "channel_tags": later("Tags"),
    "channel_categories": later("Categories"),
    "channel_delivery": later("Delivery settings"),
    "channel_identity": later("Identity"),
    "channel_webhooks": later("Webhooks"),
    "channel_vapid": later("Web push key"),
    "channel_settings": later("Settings"),
}


class TabPage(ChannelPage):
    """`tab`: the name of the page's URL, and of the tab that is marked as current."""

    tab: ClassVar[str]

    def back(self, message: str) -> HttpResponseRedirect:
        """Redirects to this page, which then shows the message."""
        messages.success(self.request, message)
        return HttpResponseRedirect(reverse(f"admin:{self.tab}", args=[self.channel.pk]))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            **kwargs,
            tabs=self._tabs(),
            may_manage=self.may(Role.MANAGER),
            may_write=self.may(Role.WRITER),
            may_send=self.may(Role.SENDER),
            may_undo_deletion=may(self.request.user, self.channel.account_id, Role.OWNER),
            heading=self.channel.name,
        ) | {
            "title": f"{self.channel.name}: {self.title}",
            "opts": Channel._meta,  # for the breadcrumbs to the channels, also in other apps
            "list_name": "",
        }

    def _tabs(self) -> list[dict[str, Any]]:
        return [
            {
                "title": title,
                "url": reverse(f"admin:{name}", args=[self.channel.pk]),
                "is_current": name == self.tab,
            }
            for name, title in _TABS.items()
        ]


class SettingsTab(TabPage, SharedFormPage):
    """A page with one form of the channel's settings. POST requires the role manager."""

    post_role = Role.MANAGER

    @override
    def lock(self) -> Channel:
        try:
            self.channel = channel_locked(self.channel.pk)
        except ChannelNotFound as error:
            raise Http404 from error
        return self.channel
