"""/test-device/<channel>: the page on which a browser becomes a test device with an invitation.

The console creates the invitation, and shows the page's address as a link and as a QR code. The
invitation is in the address's fragment, so servers and logs do not get it with the page.
"""

from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import render
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from channels_app.console.access import may
from channels_app.models import Role
from channels_app.selectors import channel_get, refuse_deleted
from pushsvc.common.errors import Forbidden
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.http.fields import Id, StrictSerializer, Text
from pushsvc.common.http.ratelimit import Limit
from pushsvc.sdk import worker_snippet
from pushsvc.sdk.files import script
from subscriptions_app.devices.test_devices import device_join, invitation_of


class JoinInput(StrictSerializer):
    invitation = Text(max_length=1_000)
    subscription_id = Id()


@extend_schema(exclude=True)
class DevicePageView(ApiView):
    """The same page for every channel, even for one that does not exist."""

    def get(self, request: Request, channel_id: UUID) -> HttpResponse:
        name, file = script()
        context = {"channel_id": channel_id, "script": name, "integrity": file.integrity}
        return render(django_request(request), "test_device.html", context)


@extend_schema(exclude=True)
class DeviceWorkerView(ApiView):
    """Each channel has its own service worker, because a browser may be a test device of several
    channels."""

    def get(self, request: Request, channel_id: UUID) -> HttpResponse:
        return HttpResponse(worker_snippet(""), content_type="text/javascript; charset=utf-8")


@extend_schema(exclude=True)
class DeviceJoinView(ApiView):
    @override
    def limit(self, request: Request) -> Limit:
        address = counted_address(django_request(request))
        return Limit("invitations", address, settings.INVITATIONS_PER_MINUTE, 60)

    def post(self, request: Request, channel_id: UUID) -> Response:
        given = JoinInput.checked(request.data)
        invitation = invitation_of(given["invitation"], channel_id=channel_id)
        channel = channel_get(channel_id)
        refuse_deleted(channel.deletion_asked_at)
        user = User.objects.filter(pk=invitation.user_id).first()
        if user is None or not may(user, channel.account_id, Role.SENDER):
            raise Forbidden("Who made this invitation may not send in the channel any more.")
        device = device_join(
            invitation=invitation,
            channel=channel,
            subscription_id=given["subscription_id"],
            user=user,
        )
        return Response({"name": device.name}, status=201)
