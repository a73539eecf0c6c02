"""A channel's test devices: list, invite, add, remove."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ActsPage, id_or_404
from channels_app.models import Role
from pushsvc.common.console.qr import qr_svg
from pushsvc.common.errors import Conflict, FieldError, Invalid, NotFound
from pushsvc.common.http.origin import own_origin
from subscriptions_app.devices.selectors import subscription_known_as
from subscriptions_app.devices.test_devices import (
    INVITED_SECONDS,
    device_add,
    device_remove,
    devices_of,
    invite,
)
from subscriptions_app.models import TestDevice


class DevicesPage(TabPage, ActsPage):
    title = "Test devices"
    template_name = "console/channels/devices.html"
    tab = "channel_devices"
    post_role = Role.SENDER

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {"invite": self._invite, "add": self._add, "remove": self._remove}

    @override
    def own_url(self) -> str:
        return reverse("admin:channel_devices", args=[self.channel.pk])

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(devices=devices_of(self.channel.pk), **kwargs)

    def _invite(self, post: QueryDict) -> HttpResponseBase:
        """Shows the invitation in this response only, because the link is secret while it is
        valid."""
        invitation = invite(channel=self.channel, name=post.get("name", ""), user=self._user)
        link = f"{own_origin(self.request)}/test-device/{self.channel.pk}#{invitation}"
        return self.shown_once(
            name=post.get("name", "").strip(),
            link=link,
            picture=qr_svg(link),
            minutes=INVITED_SECONDS // 60,
        )

    def _add(self, post: QueryDict) -> HttpResponseBase:
        found = subscription_known_as(channel_id=self.channel.pk, text=post.get("known_as", ""))
        if found is None:
            raise Invalid(
                [FieldError("known_as", NotFound.code, "The channel has no such subscriber.")]
            )
        name, user = post.get("name", ""), self._user
        try:
            device = device_add(
                channel=self.channel, name=name, subscription_id=found.pk, user=user
            )
        except (Conflict, NotFound) as error:
            messages.error(self.request, error.detail)
            return HttpResponseRedirect(self.own_url())
        return self.back(f"“{device}” is a test device.")

    def _remove(self, post: QueryDict) -> HttpResponseBase:
        own = TestDevice.objects.filter(channel=self.channel)
        device = own.filter(pk=id_or_404(post.get("device", ""))).first()
        if device is None:
            raise Http404
        device_remove(device)
        return self.back(f"“{device}” is no longer a test device. It is still a subscriber.")

    @property
    def _user(self) -> User:
        return cast(User, self.request.user)
