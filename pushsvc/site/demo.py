"""/demo: a page that subscribes this browser and sends to it. Served only if DEMO_RECORD is set.

Anyone who can open the page may subscribe, as on any site. Sending needs no API key here. So it is
allowed only from this machine and only from the page itself, and the text is fixed.
"""

import json
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.models import Channel
from channels_app.selectors import channel_get
from notifications_app.content.values import Content, SendRequest
from notifications_app.models import Notification
from notifications_app.selectors import COUNTS, notification_get
from notifications_app.sends.services import notification_accept
from pushsvc.common.errors import Forbidden, NotFound
from pushsvc.common.http.client_address import is_from_this_machine
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.platforms import Platform
from pushsvc.sdk import worker_snippet
from pushsvc.sdk.files import script

_TTL_SECONDS: Final = 600


@extend_schema(exclude=True)
class DemoView(ApiView):
    def get(self, request: Request) -> HttpResponse:
        name, file = script()
        context = {"channel": _channel(), "script": name, "integrity": file.integrity}
        return render(django_request(request), "demo.html", context)


@extend_schema(exclude=True)
class DemoWorkerView(ApiView):
    """The page's service worker. Here the site and the service have the same origin."""

    def get(self, request: Request) -> HttpResponse:
        _channel()
        return HttpResponse(worker_snippet(""), content_type="text/javascript; charset=utf-8")


@extend_schema(exclude=True)
class DemoSendView(ApiView):
    def post(self, request: Request) -> Response:
        channel = _channel()
        _require_own_page(request)
        greeting = _greeting(django_request(request).build_absolute_uri("/demo"))
        accepted = notification_accept(channel=channel, request=greeting)
        return Response({"notification_id": str(accepted.id)}, status=202)


@extend_schema(exclude=True)
class DemoCountsView(ApiView):
    def get(self, request: Request, notification_id: UUID) -> Response:
        channel = _channel()
        _require_this_machine(request)
        found = notification_get(channel_id=channel.id, notification_id=notification_id)
        return Response(_counts(found))


def _channel() -> Channel:
    """The demo channel, which `make run` records at its start. Raises NotFound if there is none."""
    if not settings.DEMO_RECORD:
        raise NotFound
    try:
        record = json.loads(Path(settings.DEMO_RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotFound("The demo is not ready yet.") from error
    return channel_get(UUID(record["channel_id"]))


def _require_this_machine(request: Request) -> None:
    if not is_from_this_machine(django_request(request)):
        raise Forbidden("The demo sends only for browsers on the machine that it runs on.")


def _require_own_page(request: Request) -> None:
    """Rejects pages of other sites, because their requests also come from this machine (CSRF)."""
    _require_this_machine(request)
    _ = request.data  # raises UnsupportedMediaType for what a form can send
    own = django_request(request).build_absolute_uri("/").removesuffix("/")
    if request.headers.get("Origin") != own:
        raise Forbidden("The demo sends only for its own page.")


def _greeting(url: str) -> SendRequest:
    content = Content(
        title="pushsvc",
        body="Hello from the demo page. Click this notification to see it counted.",
        url=url,
        ttl=_TTL_SECONDS,
        urgency="high",
    )
    return SendRequest(content=content, target_platforms=(Platform.WEB,))


def _counts(notification: Notification) -> dict[str, Any]:
    return {"status": notification.status} | {name: getattr(notification, name) for name in COUNTS}
