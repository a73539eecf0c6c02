"""Public views for devices: reporting events, and the link that records a click."""

from typing import Final

from django.conf import settings
from django.http import HttpResponse
from django.utils.encoding import iri_to_uri
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from notifications_app.api.serializers import EventsInput
from notifications_app.content.tracking import TOKEN_LENGTH
from notifications_app.events import (
    MAX_BODY,
    Event,
    EventKind,
    click_follow,
    events_record,
    holds_valid_token,
    read_events,
)
from pushsvc.common.errors import BodyTooLarge
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.http.negotiation import StrictJSONParser
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.http.ratelimit import Limit

_TAG: Final = "events"
_EXAMPLE: Final = OpenApiExample(
    "A click",
    {
        "events": [
            {
                "token": "AZqi8Fo-fBGfOj8MbR97UgGaovBaPnwRnzo_DG0fe1NnQx2V0yqmT7b9y3bX5kAp",
                "event": "clicked",
            }
        ]
    },
    request_only=True,
)
# With these headers and words, browsers and messengers mark requests without a click.
_AHEAD_HEADERS: Final = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")
_AHEAD_WORDS: Final = ("prefetch", "prerender", "preview")


class BeaconParser(StrictJSONParser):
    """JSON as `navigator.sendBeacon` sends it: as text, because that needs no CORS preflight."""

    media_type = "text/plain"


class EventsView(ApiView):
    parser_classes = (StrictJSONParser, BeaconParser)
    is_limit_told = False  # otherwise the headers would show which tokens are valid

    @override
    def limit(self, request: Request) -> Limit | None:
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BODY:
            raise BodyTooLarge("The body of this request may hold at most 8 KiB.")
        body = django_request(request).body
        return None if holds_valid_token(body) else _limit_without_token(request)

    @extend_schema(
        operation_id="report_events",
        summary="Report that a notification was received, clicked or dismissed",
        description="Each event counts once for each recipient. The response is the same for tokens"
        " that are unknown, forged, repeated or older than 28 days. Beacons send the same JSON as"
        " `text/plain`.",
        tags=[_TAG],
        auth=[],
        request={"application/json": EventsInput},
        examples=[_EXAMPLE],
        responses={
            204: OpenApiResponse(description="The events were read."),
            **problem_responses(400, 413, 415, 429, 503),
        },
    )
    def post(self, request: Request) -> Response:
        events_record(read_events(EventsInput.checked(request.data)["events"]))
        return Response(status=204)


class ClickView(ApiView):
    is_limit_told = False  # as for EventsView

    @override
    def limit(self, request: Request) -> Limit | None:
        return None if _clicked(self.kwargs["token"]) else _limit_without_token(request)

    @extend_schema(
        operation_id="follow_click",
        summary="Record a click and redirect to the notification's url",
        description="For clients that cannot run code. Clicks with a token older than 28 days, HEAD"
        " requests and prefetching are not counted. A personal url has its values for 28 days,"
        " while the device belongs to the person to whom the message was sent. Otherwise, and for"
        " HEAD, it is the url of the common texts.",
        tags=[_TAG],
        auth=[],
        parameters=[
            OpenApiParameter(
                "token",
                {"type": "string", "pattern": f"^[A-Za-z0-9_-]{{{TOKEN_LENGTH}}}$"},
                OpenApiParameter.PATH,
                description="The tracking token of the message.",
            ),
            OpenApiParameter(
                "Location",
                OpenApiTypes.URI,
                OpenApiParameter.HEADER,
                response=[302],
                description="The notification's `url`.",
            ),
        ],
        responses={
            302: OpenApiResponse(description="Redirects to the notification's `url`."),
            **problem_responses(404, 429, 503),
        },
    )
    def get(self, request: Request, token: str) -> HttpResponse:
        url = click_follow(
            _clicked(token), is_counted=_is_click(request), is_personal=request.method == "GET"
        )
        headers = {"Location": iri_to_uri(url), "Referrer-Policy": "no-referrer"}
        return HttpResponse(status=302, headers=headers)


def _clicked(token: str) -> list[Event]:
    return read_events([(token, EventKind.CLICKED, "")])


def _is_click(request: Request) -> bool:
    """False for HEAD, and for a request whose headers mark it as a prefetch or preview."""
    purpose = " ".join(request.headers.get(name, "") for name in _AHEAD_HEADERS).lower()
    return request.method == "GET" and not any(word in purpose for word in _AHEAD_WORDS)


def _limit_without_token(request: Request) -> Limit:
    """The limit of requests without a valid token. Requests with a token are not limited, so that
    clients without a token cannot use up the limit of devices that share their address."""
    address, quota = counted_address(django_request(request)), settings.FORGED_EVENTS_PER_MINUTE
    return Limit("forged-events", address, quota, 60)
