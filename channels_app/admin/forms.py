"""The forms of a channel's pages. The forms only read values; the services check them."""

from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.forms.models import model_to_dict
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.shared_forms import SharedForm
from channels_app.models import Account, Channel, Identity, Scope
from pushsvc.common.console.forms import ConsoleForm, ZoneField
from pushsvc.common.console.zones import SkippedTime, moment_on_clock
from pushsvc.common.links import CLICKS
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.texts import later


class ChannelForm(ConsoleForm):
    name = forms.CharField(max_length=200)
    vapid_subject = forms.CharField(
        max_length=255,
        label=later("Contact for push services"),
        help_text=later(
            "Where they reach you if your messages cause problems, such as "
            "mailto:push@shop.example or an https: address (the VAPID subject)."
        ),
    )
    site_url = forms.CharField(
        max_length=2000,
        required=False,
        label=later("Address of your site"),
        help_text=later(
            "Safari opens this address on a click if the notification has none and "
            "Safari has removed your site's service worker."
        ),
    )


class NewChannelForm(ChannelForm):
    account = forms.ModelChoiceField(
        queryset=Account.objects.none(),
        help_text=later("Members of this account can see the channel."),
    )
    field_order = ("account",)


def _limit(label: str, whose: str, most: int = 1_000_000) -> forms.IntegerField:
    return forms.IntegerField(
        required=False,
        min_value=1,
        max_value=most,
        label=label,
        help_text=later(
            "%(whose)s Leave empty to use the installation's default. Only a superuser "
            "can set a higher limit.",
            whose=whose,
        ),
    )


class SettingsForm(SharedForm, ChannelForm):
    audited_as = {"enabled": [f"{name}_enabled" for name in PLATFORM_NAMES]}

    enabled = forms.MultipleChoiceField(
        label=later("Platforms"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=later("A disabled platform accepts no subscriptions and no notifications."),
    )
    web_click = forms.ChoiceField(
        label=later("A click in browsers"),
        choices=[(value, later(text)) for value, text in CLICKS.items()],
        help_text=later(
            "For links of your site. A send can choose another behavior. The last one "
            "needs an “open” listener on your pages."
        ),
    )
    sends_per_second = _limit(
        later("Sends per second"), later("For all API keys of the channel together.")
    )
    subscribes_per_minute = _limit(later("Subscriptions per minute"), later("For each IP address."))
    max_subscriptions = _limit(
        later("Maximum subscriptions"),
        later(
            "Includes expired subscriptions. When the channel is full, the oldest "
            "subscriptions that never accepted a message are deleted."
        ),
        1_000_000_000,
    )

    identity = forms.ChoiceField(
        label=later("Identity"),
        choices=Identity.choices,
        help_text=later(
            "With “Trust”, anyone who knows a user's id can receive that user's messages."
        ),
    )

    @classmethod
    def of(cls, channel: Channel, choices: list[str], data: Any = None) -> "SettingsForm":
        """The form with the channel's values. `choices`: the platforms that can be enabled."""
        enabled = [name for name, is_on in channel.platforms.items() if is_on]
        form = cls(data, initial=model_to_dict(channel) | {"enabled": enabled})
        form.fields["enabled"].choices = [(name, PLATFORM_NAMES[name]) for name in choices]  # type: ignore[attr-defined] # a choice field
        return form


class KeyForm(ConsoleForm):
    name = forms.CharField(
        max_length=200, help_text=later("Which program uses it, such as shop backend.")
    )
    scopes = forms.MultipleChoiceField(
        choices=[
            (Scope.SEND.value, later("send: sends and cancels notifications")),
            (Scope.READ.value, later("read: reads statistics")),
            (Scope.MANAGE.value, later("manage: changes credentials and segments")),
            (
                Scope.SUBSCRIBERS.value,
                later("subscribers: reads and changes people and their devices"),
            ),
        ],
        initial=[Scope.SEND.value, Scope.READ.value],
        widget=forms.CheckboxSelectMultiple,
    )
    expires_at = forms.DateTimeField(
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
        help_text=later("Leave empty for a key that never expires."),
    )
    # Of the page that was shown: the reader may choose another one meanwhile.
    zone = ZoneField(required=False, widget=forms.HiddenInput)

    @classmethod
    def of(cls, zone: str, data: Any = None) -> "KeyForm":
        """The form, whose times are on the clock of the zone unless `data` names another one."""
        form = cls(data, initial={"zone": zone})
        form.fields["expires_at"].label = gettext("Expires (%(value)s)") % {
            "value": form["zone"].value()
        }
        return form

    @override
    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        zone = cleaned.pop("zone", "") or self.initial["zone"]
        if expires_at := cleaned.get("expires_at"):
            try:
                cleaned["expires_at"] = moment_on_clock(expires_at, ZoneInfo(zone))
            except SkippedTime as error:
                self.add_error("expires_at", str(error))
            except OverflowError:  # it has another date in UTC, which does not exist
                self.add_error("expires_at", self.fields["expires_at"].error_messages["invalid"])
        return cleaned


def _pasted(label: str, help_text: str) -> forms.CharField:
    look = {"rows": 5, "autocomplete": "off", "spellcheck": "false"}
    return forms.CharField(
        required=False, label=label, help_text=help_text, widget=forms.Textarea(attrs=look)
    )


class FcmForm(ConsoleForm):
    """A service account's JSON, pasted or uploaded."""

    prefix = "android"
    text = _pasted(
        later("Service account (JSON)"),
        later("Firebase console → Project settings → Service accounts → Generate new private key."),
    )
    file = forms.FileField(required=False, label=later("Or upload the file"))


class ApnsForm(ConsoleForm):
    """A .p8 key with its ids, topic and environment."""

    prefix = "ios"
    text = _pasted(
        later("Key (.p8)"),
        later("developer.apple.com → Keys → a key with Apple Push Notifications service."),
    )
    file = forms.FileField(required=False, label=later("Or upload the file"))
    key_id = forms.CharField(max_length=10, label=later("Key id"))
    team_id = forms.CharField(max_length=10, label=later("Team id"))
    topic = forms.CharField(max_length=255, label=later("Topic (bundle id)"))
    environment = forms.ChoiceField(
        choices=[("production", "production"), ("sandbox", later("sandbox (development builds)"))]
    )
