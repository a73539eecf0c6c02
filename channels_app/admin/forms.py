"""What a channel's pages ask for. Rules are the services'; a form only reads."""

from typing import Any

from django import forms

from channels_app.models import Account, Channel, Scope
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.platforms import PLATFORM_NAMES

ENVIRONMENTS = [("production", "production"), ("sandbox", "sandbox (development builds)")]


class ChannelForm(ConsoleForm):
    name = forms.CharField(max_length=200)
    vapid_subject = forms.CharField(
        max_length=255,
        label="Contact for push services",
        help_text="mailto: or https: address at which they may reach you (VAPID subject).",
    )


class NewChannelForm(ChannelForm):
    account = forms.ModelChoiceField(
        queryset=Account.objects.none(), help_text="Whose staff may see it."
    )
    field_order = ("account",)


def _limit(label: str, whose: str, most: int = 1_000_000) -> forms.IntegerField:
    return forms.IntegerField(
        required=False,
        min_value=1,
        max_value=most,
        label=label,
        help_text=f"{whose} Empty: the installation's setting.",
    )


class SettingsForm(ChannelForm):
    enabled = forms.MultipleChoiceField(
        label="Platforms",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="A platform that is off takes no subscriptions and no notifications.",
    )
    sends_per_second = _limit("Sends a second", "For all API keys of the channel together.")
    subscribes_per_minute = _limit("Subscriptions a minute", "For each address.")
    max_subscriptions = _limit(
        "Subscriptions at most",
        "Also expired ones. A full channel drops the oldest that never took a message.",
        1_000_000_000,
    )

    @classmethod
    def of(cls, channel: Channel, choices: list[str], data: Any = None) -> "SettingsForm":
        """Filled with what the channel has; `choices`: platforms that can be on."""
        form = cls(
            data,
            initial={
                "name": channel.name,
                "vapid_subject": channel.vapid_subject,
                "enabled": [name for name, is_on in channel.platforms.items() if is_on],
                "sends_per_second": channel.sends_per_second,
                "subscribes_per_minute": channel.subscribes_per_minute,
                "max_subscriptions": channel.max_subscriptions,
            },
        )
        form.fields["enabled"].choices = [(name, PLATFORM_NAMES[name]) for name in choices]  # type: ignore[attr-defined] # a choice field
        return form


class KeyForm(ConsoleForm):
    name = forms.CharField(max_length=200, required=False, help_text="Who or what will use it.")
    scopes = forms.MultipleChoiceField(
        choices=[
            (Scope.SEND.value, "send: send and cancel notifications"),
            (Scope.READ.value, "read: read statistics"),
            (Scope.MANAGE.value, "manage: credentials and segments"),
        ],
        initial=[Scope.SEND.value, Scope.READ.value],
        widget=forms.CheckboxSelectMultiple,
    )
    expires_at = forms.DateTimeField(
        required=False,
        label="Expires (UTC)",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
        help_text="Empty: never.",
    )


class FcmForm(ConsoleForm):
    """A service account's JSON, pasted or uploaded."""

    prefix = "android"
    text = forms.CharField(
        required=False,
        label="Service account (JSON)",
        widget=forms.Textarea(attrs={"rows": 5, "autocomplete": "off", "spellcheck": "false"}),
        help_text="Firebase console → Project settings → Service accounts → Generate new private"
        " key.",
    )
    file = forms.FileField(required=False, label="or its file")


class ApnsForm(ConsoleForm):
    """A .p8 key with what belongs to it."""

    prefix = "ios"
    text = forms.CharField(
        required=False,
        label="Key (.p8)",
        widget=forms.Textarea(attrs={"rows": 5, "autocomplete": "off", "spellcheck": "false"}),
        help_text="developer.apple.com → Keys → a key with Apple Push Notifications service.",
    )
    file = forms.FileField(required=False, label="or its file")
    key_id = forms.CharField(max_length=10, label="Key id")
    team_id = forms.CharField(max_length=10, label="Team id")
    topic = forms.CharField(max_length=255, label="Topic (bundle id)")
    environment = forms.ChoiceField(choices=ENVIRONMENTS)
