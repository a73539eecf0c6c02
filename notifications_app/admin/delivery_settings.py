"""A channel's Delivery settings tab: what sends use unless they say otherwise."""

from django import forms
from django.forms.models import model_to_dict
from django.http import QueryDict
from django.http.response import HttpResponseBase
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import FormPage
from channels_app.models import Role
from notifications_app.sends.delivery_settings import delivery_settings_replace
from notifications_app.sends.schema import MAX_RATE
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.timestamps import timezone_names


class DeliverySettingsForm(ConsoleForm):
    timezone = forms.ChoiceField(
        label="Time zone",
        choices=lambda: [(name, name) for name in timezone_names()],
        help_text="For subscribers whose own time zone is unknown.",
    )
    rate_per_minute = forms.IntegerField(
        label="Recipients a minute",
        required=False,
        min_value=1,
        max_value=MAX_RATE,
        help_text="For each send that does not name its own rate. Leave empty to send as fast as "
        "possible.",
    )
    category_required = forms.BooleanField(
        label="Require a category",
        required=False,
        help_text="A send to all subscribers or to a rule must name a category. "
        "Subscribers cannot opt out of a send without one.",
    )


class DeliverySettingsPage(TabPage, FormPage):
    title = "Delivery settings"
    template_name = "console/channels/delivery.html"
    tab = "channel_delivery"
    post_role = Role.MANAGER

    @override
    def accept(self, form: DeliverySettingsForm) -> HttpResponseBase:
        delivery_settings_replace(channel_id=self.channel.pk, **form.cleaned_data)
        return self.back("The delivery settings were saved.")

    @override
    def make_form(self, data: QueryDict | None = None) -> DeliverySettingsForm:
        return DeliverySettingsForm(data, initial=model_to_dict(self.channel))
