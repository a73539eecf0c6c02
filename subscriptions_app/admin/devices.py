"""A channel's test devices: list, find, invite, add, remove."""

from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import FormPage, id_or_404, number_or_404
from channels_app.models import Role
from pushsvc.common.console.forms import ConsoleForm
from pushsvc.common.console.qr import qr_svg
from pushsvc.common.http.origin import own_origin
from pushsvc.common.links import LinkKind, is_link
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.texts import later
from subscriptions_app.devices.selectors import devices_known_as, newest_devices
from subscriptions_app.devices.test_devices import (
    INVITED_SECONDS,
    device_give,
    device_names,
    device_remove,
    devices_of,
    invite,
    writers_of,
)
from subscriptions_app.models import MAX_DEVICE_NAME, Subscription, TestDevice

_FOUND: Final = 10
_ATTRIBUTES_SHOWN: Final = 60  # characters
_MAX_SEARCH: Final = 128  # characters: an external id's, which is the longest
# The browser, by its push service.
_BROWSERS: Final = {
    "fcm": later("Chrome or a related browser"),
    "mozilla": "Firefox",
    "apple": "Safari",
    "wns": "Edge",
}


class DeviceNameForm(ConsoleForm):
    name = forms.CharField(
        label=later("Name"),
        required=False,  # the service checks it
        widget=forms.TextInput(
            attrs={"maxlength": MAX_DEVICE_NAME, "required": True, "autocomplete": "off"}
        ),
    )


def _require_app_link(link: str) -> None:
    """Raises ValidationError, also for a link with a fragment, in which the invitation follows."""
    if not link.isascii() or "#" in link or not is_link(link, LinkKind.APP):
        raise ValidationError(gettext("Enter a link such as shop://test-device."))


class InvitationForm(DeviceNameForm):
    app_link = forms.CharField(
        label=later("Link that opens your app"),
        required=False,
        max_length=200,
        validators=[_require_app_link],
        help_text=later("Optional. The code then opens the app instead of a browser."),
        widget=forms.TextInput(attrs={"placeholder": "shop://test-device"}),
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="invite-%s")
        self.fields["name"].widget.attrs["placeholder"] = gettext("the kitchen iPhone")


class DevicesPage(TabPage, FormPage):
    """GET with `q` finds devices by external id, id or hash of the address; without, it lists the
    newest. POST removes the named device, or shows an invitation in its response only, because the
    link is secret while it is valid."""

    title = later("Test devices")
    template_name = "console/channels/devices.html"
    tab = "channel_devices"
    post_role = Role.SENDER
    form_class = InvitationForm

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        q = self.request.GET.get("q", "").strip()[: _MAX_SEARCH + 1]
        return super().get_context_data(
            devices=devices_of(self.channel.pk),
            writers=writers_of(self.channel) if self.may(Role.SENDER) else (),
            q=q,
            max_search=_MAX_SEARCH,
            found=self._found(q),
            **kwargs,
        )

    def _found(self, q: str) -> list[dict[str, Any]]:
        channel_id = self.channel.pk
        names = device_names(channel_id)
        found = (
            devices_known_as(channel_id=channel_id, text=q, limit=_FOUND)
            if q
            else newest_devices(channel_id, limit=_FOUND)
        )
        return [
            {
                "subscription": each,
                "browser": browser_of(each),
                "attributes": attributes_shown(each),
                "test_name": names.get(each.pk, ""),
            }
            for each in found
        ]

    @override
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if "writer" in request.POST:
            return self._give(request.POST.get("device", ""), request.POST["writer"])
        if "device" in request.POST:
            return self._remove(request.POST["device"])
        return super().post(request, *args, **kwargs)

    @override
    def accept(self, form: Any) -> HttpResponseBase:
        name = form.cleaned_data["name"]
        invitation = invite(channel=self.channel, name=name, user=self.staff)
        app_link = form.cleaned_data["app_link"]
        page = f"{own_origin(self.request)}/test-device/{self.channel.pk}"
        link = f"{app_link or page}#{invitation}"
        return self.shown_once(
            name=name,
            link=link,
            is_app=bool(app_link),
            picture=qr_svg(link),
            minutes=INVITED_SECONDS // 60,
        )

    def _device(self, device_id: str) -> TestDevice:
        own = TestDevice.objects.filter(channel=self.channel).select_related("channel")
        return get_object_or_404(own, pk=id_or_404(device_id))

    def _give(self, device_id: str, user_id: str) -> HttpResponseBase:
        device = self._device(device_id)
        writers = writers_of(self.channel)
        writer = get_object_or_404(writers, pk=number_or_404(user_id)) if user_id else None
        device_give(device, writer)
        text = (
            gettext("%(writer)s may now send tests to “%(device)s”.")
            if writer
            else gettext("No writer may send tests to “%(device)s”.")
        )
        return self.back(text % {"writer": writer, "device": device})

    def _remove(self, device_id: str) -> HttpResponseBase:
        device = self._device(device_id)
        device_remove(device)
        return self.back(
            gettext("“%(device)s” is no longer a test device. It is still a subscriber.")
            % {"device": device}
        )


def suggested_name(subscription: Subscription) -> str:
    """A name for the device of a known person, such as “user-17, iOS”; else ""."""
    if subscription.person is None:
        return ""
    kind = PLATFORM_NAMES[subscription.platform]
    who = Truncator(subscription.person.external_id).chars(MAX_DEVICE_NAME - len(kind) - 2)
    return f"{who}, {kind}" if who.isprintable() else ""


def browser_of(subscription: Subscription) -> str:
    """The browser, as far as its push service shows it; else ""."""
    return _BROWSERS.get(subscription.push_service, "")


def attributes_shown(subscription: Subscription) -> str:
    """The beginning of the attributes in one line."""
    pairs = (f"{name}: {value}" for name, value in subscription.attributes.items())
    return Truncator(" · ".join(pairs)).chars(_ATTRIBUTES_SHOWN)


def to_test_devices(subscription: Subscription) -> str:
    return reverse("admin:channel_devices", args=[subscription.channel_id])
