"""A channel's Delivery settings tab: what sends use unless they say otherwise."""

from typing import Any, Final

from django import forms
from django.forms.models import model_to_dict
from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import SettingsTab
from channels_app.console.shared_forms import SharedForm
from channels_app.models import MAX_INBOX_DAYS
from notifications_app.sends.delivery_settings import (
    MAX_CAP_HOURS,
    MAX_CAP_LIMIT,
    MOST_CAPS,
    delivery_settings_replace,
)
from notifications_app.sends.schema import MAX_RATE
from pushsvc.common.console.forms import ZoneField
from pushsvc.common.texts import later

_CAPS: Final = tuple(
    (f"cap_limit_{number}", f"cap_hours_{number}") for number in range(1, MOST_CAPS + 1)
)


def _limit_field(label: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=1,
        max_value=MAX_CAP_LIMIT,
        help_text=later(
            "Who has had as many is skipped by further sends. Leave empty for any number."
        ),
    )


def _hours_field(label: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=1,
        max_value=MAX_CAP_HOURS,
        help_text=later("Any hours in a row: 23 for one a day, 167 for a week."),
    )


class DeliverySettingsForm(SharedForm):
    audited_as = dict.fromkeys(["quiet_from", "quiet_to"], ("quiet_hours",)) | dict.fromkeys(
        [name for cap in _CAPS for name in cap], ("caps",)
    )

    timezone = ZoneField(
        label=later("Time zone"),
        help_text=later("For subscribers whose own time zone is unknown."),
    )
    rate_per_minute = forms.IntegerField(
        label=later("Recipients a minute"),
        required=False,
        min_value=1,
        max_value=MAX_RATE,
        help_text=later(
            "For each send that does not name its own rate. Leave empty to send as fast "
            "as possible."
        ),
    )
    category_required = forms.BooleanField(
        label=later("Require a category"),
        required=False,
        help_text=later(
            "A send to all subscribers or to a rule must name a category. Subscribers "
            "cannot opt out of a send without one."
        ),
    )

    quiet_from = forms.RegexField(
        r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        label=later("Quiet hours begin at"),
        required=False,
        help_text=later(
            "By the clock of each recipient, for example 22:00. Sends wait until they "
            "end, unless the sender chooses otherwise."
        ),
        widget=forms.TimeInput(attrs={"type": "time"}),
    )
    quiet_to = forms.RegexField(
        r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        label=later("Quiet hours end at"),
        required=False,
        help_text=later("For example 08:00. Leave both empty for none."),
        widget=forms.TimeInput(attrs={"type": "time"}),
    )

    cap_limit_1 = _limit_field(later("Cap: sends for each person"))
    cap_hours_1 = _hours_field(later("In so many hours"))
    cap_limit_2 = _limit_field(later("Second cap: sends for each person"))
    cap_hours_2 = _hours_field(later("In so many hours"))

    inbox_days = forms.IntegerField(
        label=later("Days in the inbox"),
        min_value=0,
        max_value=MAX_INBOX_DAYS,
        help_text=later(
            "For how long apps and sites can list what a device was sent, including what "
            "did not arrive. 0 if they cannot."
        ),
    )

    @override
    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        begin, end = cleaned.get("quiet_from"), cleaned.get("quiet_to")
        if not self.errors and (bool(begin) != bool(end) or (begin and begin == end)):
            self.add_error("quiet_to", gettext("Enter both, and an end that is not the begin."))
        for limit, hours in _CAPS:
            if not {limit, hours} & self.errors.keys() and (
                bool(cleaned[limit]) != bool(cleaned[hours])
            ):
                self.add_error(hours, gettext("Enter both numbers, or none."))
        return cleaned

    @property
    def values(self) -> dict[str, Any]:
        """The settings, as `delivery_settings_replace` takes them."""
        own = dict(self.cleaned_data)
        begin, end = own.pop("quiet_from"), own.pop("quiet_to")
        caps = [{"limit": own.pop(limit), "hours": own.pop(hours)} for limit, hours in _CAPS]
        return own | {
            "quiet_hours": {"from": begin, "to": end} if begin else None,
            "caps": [each for each in caps if each["limit"]],
        }


class DeliverySettingsPage(SettingsTab):
    title = later("Delivery settings")
    template_name = "console/channels/delivery.html"
    tab = "channel_delivery"

    @override
    def accept(self, form: DeliverySettingsForm) -> HttpResponseBase:
        delivery_settings_replace(channel_id=self.channel.pk, **form.values)
        return self.back(gettext("The delivery settings were saved."))

    @override
    def make_form(self, data: QueryDict | None = None) -> DeliverySettingsForm:
        quiet = self.channel.quiet_hours or {"from": "", "to": ""}
        own = {"quiet_from": quiet["from"], "quiet_to": quiet["to"]}
        for (limit, hours), cap in zip(_CAPS, self.channel.caps or (), strict=False):
            own |= {limit: cap["limit"], hours: cap["hours"]}
        return DeliverySettingsForm(data, initial=model_to_dict(self.channel) | own)
