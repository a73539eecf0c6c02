"""A channel's automations: the list, the form of an automation, its days, and actions."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import URLPattern, reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ActsPage, ChannelPage, own_or_404
from channels_app.models import Channel, Role
from notifications_app.admin.automation_form import (
    EVENTS,
    OWN_ATTRS,
    UNITS,
    WORDS,
    FollowForm,
    delay_words,
    event_words,
    read_again,
    read_delay,
    read_recipient,
    read_trigger,
)
from notifications_app.admin.compose.form import ComposeForm
from notifications_app.admin.compose.template_form import form_of
from notifications_app.admin.schedule_form import send_form
from notifications_app.admin.stored_send_page import StoredSendPage
from notifications_app.models import (
    MAX_REPEATED_NAME,
    SKIPPED,
    Automation,
    AutomationDay,
    Notification,
    Recipient,
    Template,
)
from notifications_app.recurrence import zone_of
from notifications_app.sends.automations import (
    MAX_AUTOMATIONS,
    automation_create,
    automation_delete,
    automation_page,
    automation_switch,
    automation_update,
    day_page,
    fired_counts,
    waiting_count,
    waiting_counts,
)
from notifications_app.sends.stored_sends import loaded
from notifications_app.sends.templates import template_find, template_names
from pushsvc.common.console.figures import grouped
from pushsvc.common.errors import Conflict, Outdated
from pushsvc.common.ids import parse_uuid
from pushsvc.common.store import sql
from pushsvc.common.texts import later

_SHOWN: Final = 30  # days
_CHANGED: Final = later(
    "The automation is still off, because it was changed after you opened this page. Check it"
    " first."
)
_UNITS: Final = {
    "minutes": later("minutes"),
    "hours": later("hours"),
    "days": later("days"),
}
_RECIPIENTS: Final = {
    Recipient.DEVICE.value: later("The device to which it happened"),
    Recipient.PERSON.value: later("All devices of its person"),
}
_SKIPPED: Final = {
    "repeated": later("contacted already"),
    "condition": later("not in the audience"),
    "gone": later("unsubscribed"),
    "platform": later("on another platform"),
    "stopped": later("stopped"),
    "late": later("too late"),
}


def pages(page: Callable[..., URLPattern]) -> list[URLPattern]:
    """The addresses. `page` makes one of a path, a view and a name."""
    all_, one = "automations/<uuid:channel_id>/", "automations/<uuid:automation_id>/"
    return [
        page(all_, AutomationsPage, "channel_automations"),
        page(f"{all_}new/", NewAutomationPage, "automation_new"),
        page(f"{one}edit/", AutomationPage, "automation_edit"),
        page(f"{one}act/", AutomationActs, "automation_act"),
    ]


def state_of(automation: Automation) -> tuple[str, str]:
    """The state in a word, and the tone of its badge."""
    if automation.disabled_code:
        return gettext("disabled: %(code)s") % {"code": automation.disabled_code}, "bad"
    return (gettext("on"), "good") if automation.is_enabled else (gettext("off"), "")


class AutomationsPage(TabPage):
    title = later("Automations")
    template_name = "console/channels/automations.html"
    tab = "channel_automations"
    http_method_names = ["get", "head"]

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = automation_page(channel_id=self.channel.pk, limit=MAX_AUTOMATIONS, offset=0)
        zone = zone_of(self.channel.timezone)
        today = datetime.combine(sql.now().astimezone(zone).date(), time(), zone)
        waiting, fired = waiting_counts(found), fired_counts(found, today)
        return super().get_context_data(
            listed=[
                _told(each) | {"waiting": waiting[each.pk], "fired": fired.get(each.pk, 0)}
                for each in found
            ],
            is_full=len(found) >= MAX_AUTOMATIONS,
            **kwargs,
        )


class _WritingPage(StoredSendPage):
    template_name = "console/notifications/automation.html"
    most_characters = MAX_REPEATED_NAME
    own_words = WORDS
    own_attrs = OWN_ATTRS

    @override
    def posted(self, post: QueryDict) -> FollowForm:
        return FollowForm.posted(post)

    @override
    def readers(self, own: FollowForm) -> dict[str, Callable[[], Any]]:
        return {
            "trigger": lambda: read_trigger(own),
            "delay_minutes": lambda: read_delay(own),
            "recipient": lambda: read_recipient(own),
            "once_per_days": lambda: read_again(own),
        }

    @override
    def own_context(self, own: FollowForm, errors: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        return {
            "follow": own,
            "follow_errors": errors,
            "events": EVENTS,
            "units": [(name, _UNITS[name]) for name in UNITS],
            "recipients": _RECIPIENTS.items(),
        }

    @override
    def said(self, saved: Automation) -> tuple[str, str]:
        words = gettext("The automation “%(automation)s” was saved.") % {"automation": saved}
        return words, reverse("admin:automation_edit", args=[saved.pk])


class NewAutomationPage(_WritingPage):
    title = later("New automation")
    role = Role.SENDER

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        template = self._template()
        form = form_of(template.content) if template else ComposeForm()
        return self.shown("", form.for_all(self.channel), FollowForm())

    @override
    def template_id(self) -> UUID | None:
        template = self._template()
        return template.pk if template else None

    def _template(self) -> Template | None:
        """The one that was chosen, unless it was deleted meanwhile."""
        chosen = self.request.GET.get("template", "")
        try:
            template_id = parse_uuid(chosen)
        except ValueError:
            return None
        return template_find(channel_id=self.channel.pk, template_id=template_id)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        own = {"templates": template_names(self.channel.pk), "template_id": self.template_id()}
        return super().get_context_data(**kwargs) | own

    @override
    def save(self, given: Mapping[str, Any]) -> Automation:
        return automation_create(channel=self.channel, **given)


class AutomationPage(_WritingPage):
    """An automation, with what it did on each day."""

    title = later("Automation")
    automation: Automation
    version: str  # the one that the user saw

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.automation = own_or_404(Automation, request, kwargs["automation_id"])
        return self.automation.channel

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.version = self.automation.version
        form = send_form(self.channel, self.automation.send)
        return self.shown(self.automation.name, form, FollowForm.of(self.automation))

    @override
    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.version = request.POST.get("version", "")
        return super().post(request, **kwargs)

    @override
    def template_id(self) -> UUID | None:
        return loaded(self.automation.send).template_id

    @override
    def save(self, given: Mapping[str, Any]) -> Automation:
        # An automation that staff turned off stays off.
        enabled = self.automation.is_enabled or bool(self.automation.disabled_code)
        try:
            return automation_update(
                channel_id=self.channel.pk,
                automation_id=self.automation.pk,
                **given,
                enabled=enabled,
                seen=self.version,
            )
        except Outdated:
            self.automation = own_or_404(Automation, self.request, self.automation.pk)
            self.version = self.automation.version
            raise

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        automation = self.automation
        days = day_page(
            channel_id=self.channel.pk, automation_id=automation.pk, limit=_SHOWN, offset=0
        )
        own = {
            "title": automation.name,
            "version": self.version,
            "waiting": waiting_count(automation),
            "days": _days_told(days),
        }
        return super().get_context_data(**kwargs) | _told(automation) | own


class AutomationActs(ActsPage, ChannelPage):
    """Turns the automation on or off, or deletes it. As for schedules, it is turned on only if the
    page showed it as it is."""

    title = later("Automation")
    role = Role.SENDER
    http_method_names = ["post"]
    automation: Automation

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.automation = own_or_404(Automation, request, kwargs["automation_id"])
        return self.automation.channel

    @override
    def own_url(self) -> str:
        return reverse("admin:automation_edit", args=[self.automation.pk])

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {"on": self._on, "off": self._off, "delete": self._delete}

    @property
    def _named(self) -> dict[str, Any]:
        return {"channel_id": self.channel.pk, "automation_id": self.automation.pk}

    def _on(self, post: QueryDict) -> HttpResponseBase:
        try:
            automation_switch(**self._named, on=True, seen=post.get("version", ""))
        except Outdated as error:
            raise Conflict(str(_CHANGED)) from error
        return self.back(gettext("The automation is on."))

    def _off(self, _: QueryDict) -> HttpResponseBase:
        automation_switch(**self._named, on=False)
        return self.back(gettext("The automation is off."))

    def _delete(self, _: QueryDict) -> HttpResponseBase:
        automation_delete(**self._named)
        words = gettext("The automation “%(automation)s” was deleted.")
        messages.success(self.request, words % {"automation": self.automation})
        return HttpResponseRedirect(reverse("admin:channel_automations", args=[self.channel.pk]))


def _told(automation: Automation) -> dict[str, Any]:
    words, about = event_words(automation)
    return {
        "automation": automation,
        "send": automation.send,
        "words": words,
        "about": about,
        "delay": delay_words(automation),
        "state": state_of(automation),
    }


def _days_told(days: Sequence[AutomationDay]) -> list[dict[str, Any]]:
    """What the automation did, with its notifications that still exist."""
    sent = Notification.objects.in_bulk([each.notification_id for each in days])
    return [
        {
            "day": each,
            "notification": sent.get(each.notification_id) if each.notification_id else None,
            "skipped": [
                f"{grouped(each.skipped[name])} {_SKIPPED[name]}"
                for name in SKIPPED
                if each.skipped[name]
            ],
        }
        for each in days
    ]
