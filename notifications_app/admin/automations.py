"""A channel's automations: the list, the form of an automation, its days, and actions."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time
from typing import Any, Final

from django.http import QueryDict
from django.urls import URLPattern, reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
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
from notifications_app.admin.stored_send_page import (
    NewSendPage,
    StoredActs,
    StoredFormPage,
    StoredSendPage,
    state_of,
)
from notifications_app.models import (
    SKIPPED,
    Automation,
    AutomationDay,
    Notification,
    Recipient,
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
from pushsvc.common.console.figures import grouped
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
    model = Automation
    has_test = False
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


class NewAutomationPage(NewSendPage, _WritingPage):
    title = later("New automation")
    create = staticmethod(automation_create)

    @override
    def first_own(self) -> FollowForm:
        return FollowForm()


class AutomationPage(StoredFormPage, _WritingPage):
    """An automation, with what it did on each day."""

    title = later("Automation")
    update = staticmethod(automation_update)

    @override
    def own_of(self) -> FollowForm:
        return FollowForm.of(self.row)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        automation = self.row
        days = day_page(
            channel_id=self.channel.pk, automation_id=automation.pk, limit=_SHOWN, offset=0
        )
        own = {"waiting": waiting_count(automation), "days": _days_told(days)}
        return super().get_context_data(**kwargs) | _told(automation) | own


class AutomationActs(StoredActs):
    title = later("Automation")
    model = Automation
    switch = staticmethod(automation_switch)
    delete_row = staticmethod(automation_delete)
    is_on = later("The automation is on.")
    is_off = later("The automation is off.")
    was_deleted = later("The automation “%(automation)s” was deleted.")

    @override
    def still_off(self) -> str:
        return str(_CHANGED)


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
