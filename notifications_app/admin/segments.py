"""Deleting a segment: here, because notifications may still need it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from typing_extensions import override

from channels_app.access import channels_of, may
from channels_app.console import ConsolePage, require
from channels_app.models import Role
from notifications_app.services import segment_delete
from pushsvc.common.errors import PushsvcError
from subscriptions_app.models import Segment


class RemovePage(ConsolePage):
    """POST only."""

    title = "Delete"
    role = Role.MANAGER
    http_method_names = ("post",)
    segment: Segment

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        seen = Segment.objects.filter(channel__in=channels_of(request.user))
        self.segment = get_object_or_404(seen.select_related("channel"), pk=kwargs["segment_id"])
        require(may(request.user, self.segment.channel.account_id, self.role), self.role)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            segment_delete(channel_id=self.segment.channel_id, segment_id=self.segment.pk)
        except PushsvcError as error:
            messages.error(request, error.detail)
            own = reverse("admin:subscriptions_app_segment_change", args=[self.segment.pk])
            return HttpResponseRedirect(own)
        messages.success(request, f"The segment “{self.segment.name}” was deleted.")
        return HttpResponseRedirect(reverse("admin:subscriptions_app_segment_changelist"))
