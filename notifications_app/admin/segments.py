"""Deletes a segment. It is in this app because notifications may still target the segment."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.pages import ChannelPage, own_or_404
from channels_app.models import Channel, Role
from notifications_app.sends.services import segment_delete
from pushsvc.common.errors import PushsvcError
from pushsvc.common.texts import later
from subscriptions_app.models import Segment


class RemovePage(ChannelPage):
    """POST only."""

    title = later("Delete")
    role = Role.MANAGER
    http_method_names = ("post",)
    segment: Segment

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.segment = own_or_404(Segment, request, kwargs["segment_id"])
        return self.segment.channel

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            segment_delete(channel_id=self.segment.channel_id, segment_id=self.segment.pk)
        except PushsvcError as error:
            messages.error(request, error.detail)
            own = reverse("admin:subscriptions_app_segment_change", args=[self.segment.pk])
            return HttpResponseRedirect(own)
        messages.success(
            request, gettext("The segment “%(name)s” was deleted.") % {"name": self.segment.name}
        )
        return HttpResponseRedirect(reverse("admin:subscriptions_app_segment_changelist"))
