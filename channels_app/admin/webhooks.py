"""A channel's Webhooks tab: its webhooks with their health, and a page for each one."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.db import transaction
from django.db.models.functions import Substr
from django.http import Http404, HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ActsPage, FormPage
from channels_app.console.shared_forms import SharedForm, save_shared
from channels_app.feeds import EVENTS, EventKind
from channels_app.models import Role, Webhook, WebhookAttempt, WebhookFormat
from channels_app.webhooks import (
    KEPT_FOR,
    MOST_WEBHOOKS,
    attempts_of,
    waiting_count,
    webhook_create,
    webhook_delete,
    webhook_get,
    webhook_locked,
    webhook_replay,
    webhook_rotate_secret,
    webhook_test,
    webhook_update,
    webhooks_of,
)
from pushsvc.common.console.figures import grouped
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.errors import NotFound
from pushsvc.common.store import sql
from pushsvc.common.texts import later

_SHOWN_MESSAGES = 100
_SHOWN_BYTES = 2_000  # of a message
_REPLAYS = {"1": later("day"), "3": later("3 days"), "14": later("14 days")}


class WebhookForm(ConsoleForm):
    url = forms.CharField(
        max_length=2000,
        label=later("Address"),
        help_text=later("https at port 443 of a public host."),
        widget=forms.URLInput(attrs={"placeholder": "https://backend.example.com/push-events"}),
    )
    format = forms.ChoiceField(
        choices=WebhookFormat.choices, label=later("Receiver"), required=False
    )
    events = forms.MultipleChoiceField(
        choices=[(each, each) for each in EVENTS],
        label=later("Events"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=later("A chat gets alerts only, so you need not choose."),
    )
    description = forms.CharField(
        max_length=200,
        label=later("Description"),
        required=False,
        help_text=later("For people."),
    )

    def clean_format(self) -> str:
        return self.cleaned_data["format"] or WebhookFormat.STANDARD

    def clean_events(self) -> list[str]:
        if self.cleaned_data.get("format") != WebhookFormat.STANDARD:
            return [EventKind.ALERT.value]
        events: list[str] = self.cleaned_data["events"]
        if not events:
            raise forms.ValidationError(gettext("Choose at least one."), "required")
        return events


class WebhookSettingsForm(SharedForm, WebhookForm):
    audited_as = {"url": ["origin"], "enabled": ["is_enabled", "disabled_code"]}

    enabled = forms.BooleanField(required=False, label=later("Enabled"))


class WebhooksPage(TabPage, FormPage):
    title = later("Webhooks")
    template_name = "console/channels/webhooks.html"
    tab = "channel_webhooks"
    post_role = Role.MANAGER
    form_class = WebhookForm

    @override
    def accept(self, form: WebhookForm) -> HttpResponseBase:
        _, secret = webhook_create(channel=self.channel, **form.cleaned_data)
        return self.shown_once(secret=secret)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = webhooks_of(self.channel.pk)
        shown = [(each, waiting_count(each.pk)) for each in found]
        return super().get_context_data(webhooks=shown, most=MOST_WEBHOOKS, **kwargs)


class WebhookPage(TabPage, ActsPage):
    """For managers, because the address may contain secrets, and messages name people."""

    title = later("Webhook")
    template_name = "console/channels/webhook.html"
    tab = "channel_webhooks"
    role = Role.MANAGER
    webhook: Webhook

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        super().check_access(request, **kwargs)
        try:
            self.webhook = webhook_get(channel_id=self.channel.pk, webhook_id=kwargs["webhook_id"])
        except NotFound as error:
            raise Http404 from error

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {
            "save": self._save,
            "test": self._test,
            "rotate": self._rotate,
            "replay": self._replay,
            "delete": self._delete,
        }

    @override
    def own_url(self) -> str:
        return reverse("admin:channel_webhook", args=[self.channel.pk, self.webhook.pk])

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        own = attempts_of(self.webhook.pk).select_related("message").defer("message__body")
        begun = own.annotate(beginning=Substr("message__body", 1, _SHOWN_BYTES + 1))
        newest = begun.order_by("-message_id")[:_SHOWN_MESSAGES]
        kwargs.setdefault("form", self._form())
        return super().get_context_data(
            webhook=self.webhook,
            waiting=waiting_count(self.webhook.pk),
            messages_sent=[(each, _text(each)) for each in newest],
            most_messages=_SHOWN_MESSAGES,
            replays=_REPLAYS,
            **kwargs,
        )

    def _form(self, data: QueryDict | None = None) -> WebhookSettingsForm:
        own = ("url", "format", "events", "description")
        initial = {name: getattr(self.webhook, name) for name in own}
        is_on = self.webhook.is_enabled or bool(self.webhook.disabled_code)
        return WebhookSettingsForm(data, initial=initial | {"enabled": is_on})

    @property
    def _named(self) -> dict[str, Any]:
        return {"channel_id": self.channel.pk, "webhook_id": self.webhook.pk}

    @transaction.atomic
    def _save(self, _: QueryDict) -> HttpResponseBase:
        self.webhook = webhook_locked(self.channel.pk, self.webhook.pk)
        return save_shared(self, self.webhook, self._form, self._accept)

    def _accept(self, form: WebhookSettingsForm) -> HttpResponseBase:
        webhook_update(**self._named, **form.cleaned_data)
        return ActsPage.back(self, gettext("The webhook was saved."))

    def _test(self, post: QueryDict) -> HttpResponseBase:
        webhook_test(**self._named)
        return ActsPage.back(
            self, gettext("A test is being sent. Reload the page to see the response.")
        )

    def _rotate(self, post: QueryDict) -> HttpResponseBase:
        self.webhook, secret = webhook_rotate_secret(**self._named)
        return self.shown_once(secret=secret)

    def _replay(self, post: QueryDict) -> HttpResponseBase:
        days = post.get("days", "")
        since = sql.now() - (timedelta(days=int(days)) if days in _REPLAYS else KEPT_FOR)
        count = webhook_replay(**self._named, since=since)
        return ActsPage.back(
            self,
            gettext("Failed messages that are sent again: %(count)s.") % {"count": grouped(count)},
        )

    def _delete(self, post: QueryDict) -> HttpResponseBase:
        webhook_delete(**self._named)
        return HttpResponseRedirect(reverse("admin:channel_webhooks", args=[self.channel.pk]))


def _text(attempt: WebhookAttempt) -> str:
    beginning = bytes(attempt.beginning)  # type: ignore[attr-defined]  # an annotation
    more = "…" if len(beginning) > _SHOWN_BYTES else ""
    return beginning[:_SHOWN_BYTES].decode(errors="ignore") + more
