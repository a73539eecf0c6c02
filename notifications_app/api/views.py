"""Views of notifications, for programs with an API key: send, cancel, list, read."""

from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from channels_app.http import (
    KeyedView,
    ReadingView,
    channel_limit,
    key_of,
    own_channel,
    require_scope,
)
from channels_app.models import Scope
from channels_app.selectors import ChannelNotFound
from notifications_app import selectors
from notifications_app.api import examples
from notifications_app.api.send_document import EditInput, SendInput
from notifications_app.api.serializers import (
    CancelOutput,
    DryRunOutput,
    NotificationDetailsOutput,
    NotificationFilter,
    NotificationListedOutput,
    NotificationOutput,
    SendOutput,
    dry_run_output,
    notification_details,
)
from notifications_app.content.values import SendRequest
from notifications_app.errors import (
    CategoryRequired,
    DeliveriesDeleted,
    IdempotencyKeyInFlight,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    NotCancellable,
    NotCombinable,
    NotEditable,
    PayloadTooLarge,
    SegmentNotFound,
    StillSending,
    TemplateNotFound,
    TooManyPending,
)
from notifications_app.models import Notification
from notifications_app.reporting.details import details_of
from notifications_app.sends.dry_run import notification_dry_run
from notifications_app.sends.editing import notification_edit
from notifications_app.sends.idempotency import IDEMPOTENCY_PARAMETER, idempotency_key, once
from notifications_app.sends.schema import read_send
from notifications_app.sends.services import notification_accept, notification_cancel
from notifications_app.sends.templates import with_template
from notifications_app.states import NotificationStatus
from pushsvc.common.errors import MissingScope
from pushsvc.common.http.openapi import follow_ups, problem_responses
from pushsvc.common.http.paging import PAGE_DESCRIPTION, PAGE_PARAMETERS, read_page
from pushsvc.common.http.ratelimit import Limit
from pushsvc.common.platforms import Platform
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.errors import CategoryUnknown, PlatformNotEnabled

_TAG: Final = "notifications"


class SendView(KeyedView):
    permission_classes = (require_scope(Scope.SEND),)

    @override
    def limit(self, request: Request) -> Limit | None:
        own = key_of(request).channel.sends_per_second
        return channel_limit(request, "sends", settings.SENDS_PER_SECOND if own is None else own, 1)

    @extend_schema(
        operation_id="send_notification",
        summary="Send a notification, now or later",
        description="202 means that the notification is stored and will be sent.",
        tags=[_TAG],
        parameters=[IDEMPOTENCY_PARAMETER],
        request=SendInput,
        extensions=follow_ups(
            202,
            "get_notification",
            "get_notification_details",
            "cancel_notification",
            "pause_notification",
            "stop_notification",
            notification_id="$response.body#/notification_id",
        ),
        examples=[
            examples.SEND,
            examples.SEND_LATER,
            examples.SEND_DIRECT,
            examples.SEND_RULE,
            examples.SEND_CORRECTION,
            examples.SEND_TEMPLATE,
        ],
        responses={
            202: OpenApiResponse(SendOutput, "Stored.", [examples.SENT]),
            200: OpenApiResponse(
                DryRunOutput,
                "With `dry_run`: nothing was stored.",
                [examples.DRY_RUN, examples.DRY_RUN_DIRECT],
            ),
            **problem_responses(
                400,
                PlatformNotEnabled("target_platforms", Platform.IOS),
                SegmentNotFound(),
                TemplateNotFound(),
                CategoryUnknown("category"),
                CategoryRequired(),
                NotCombinable("rule", "A send has one audience. This one also names `segment_id`."),
                PayloadTooLarge(Platform.WEB, 4100, 3993),
                IdempotencyKeyInvalid(),
                401,
                MissingScope(Scope.SEND),
                IdempotencyKeyInFlight(),
                StillSending(),
                DeliveriesDeleted(UUID(examples.ID), 30),
                TooManyPending("The channel has 10,000 notifications that wait to be sent."),
                413,
                415,
                IdempotencyKeyReused(),
                429,
                503,
            ),
        },
    )
    def post(self, request: Request) -> Response:
        channel, body, key = key_of(request).channel, request.data, idempotency_key(request)

        def read() -> SendRequest:
            return read_send(with_template(channel.id, body))

        if isinstance(body, dict) and body.get("dry_run") is True:
            return Response(dry_run_output(notification_dry_run(channel=channel, request=read())))
        accepted = once(
            channel_id=channel.id,
            key=key,
            body=body,
            act=lambda: _accepted(notification_accept(channel=channel, request=read())),
        )
        return Response(accepted, status=202)


class CancelView(KeyedView):
    permission_classes = (require_scope(Scope.SEND),)

    @extend_schema(
        operation_id="cancel_notification",
        summary="Cancel a notification that is still pending",
        description="Safe to repeat. A notification that is processed or sent cannot be cancelled."
        " `message` has the notification's title if the key has the scope `read`.",
        tags=[_TAG],
        responses={
            200: OpenApiResponse(CancelOutput, "Cancelled, now or before.", [examples.CANCELLED]),
            **problem_responses(
                401,
                MissingScope(Scope.SEND),
                404,
                NotCancellable(UUID(examples.ID), "sent"),
                429,
                503,
            ),
        },
    )
    def delete(self, request: Request, notification_id: UUID) -> Response:
        notification = notification_cancel(
            channel_id=key_of(request).channel_id, notification_id=notification_id
        )
        may_read = Scope.READ in key_of(request).scopes
        title = f' "{notification.title}"' if notification.title and may_read else ""
        return Response(
            {
                "success": True,
                "message": f"Notification {notification.id}{title} is cancelled.",
                "notificationId": str(notification.id),
            }
        )


class NotificationListView(ReadingView):
    @extend_schema(
        operation_id="list_notifications",
        summary="List the channel's notifications, newest first",
        description="A notification that was sent immediately is scheduled for the time of its"
        f" send. {PAGE_DESCRIPTION} A notification that is accepted while you read page by"
        " page moves the others back, so the next page may repeat some; it leaves none out.",
        tags=[_TAG],
        parameters=[NotificationFilter, *PAGE_PARAMETERS],
        extensions=follow_ups(
            200,
            "get_notification",
            "cancel_notification",
            notification_id="$response.body#/0/notification_id",
        ),
        responses={
            200: OpenApiResponse(NotificationListedOutput(many=True), "A page.", [examples.LISTED]),
            **problem_responses(400, 401, MissingScope(Scope.READ), ChannelNotFound(), 429, 503),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        only = NotificationFilter.checked(request.query_params.dict())
        read = partial(selectors.notification_page, channel_id=channel.id, **only)
        found, links = read_page(request, read)
        listed = NotificationListedOutput()
        return Response([listed.to_representation(each) for each in found], headers=links)


class NotificationView(ReadingView):
    @override
    def get_permissions(self) -> list[Any]:
        if self.request.method == "PATCH":
            # It also returns the notification.
            return [require_scope(Scope.SEND)(), require_scope(Scope.READ)()]
        return list(super().get_permissions())

    @override
    def limit(self, request: Request) -> Limit | None:
        of = KeyedView if request.method == "PATCH" else ReadingView
        return of.limit(self, request)

    @extend_schema(
        operation_id="get_notification",
        summary="Get notification statistics",
        extensions=follow_ups(
            200, "cancel_notification", notification_id="$response.body#/notification_id"
        ),
        description="`recipient_count` is `delivered_count` + `bounced_count` once it is `sent`"
        " or `failed`. Delivered means that the push service accepted the message.",
        tags=[_TAG],
        responses={
            200: OpenApiResponse(NotificationOutput, "The notification.", [examples.READ]),
            **problem_responses(401, MissingScope(Scope.READ), 404, 429, 503),
        },
    )
    def get(self, request: Request, notification_id: UUID) -> Response:
        notification = selectors.notification_get(
            channel_id=key_of(request).channel_id, notification_id=notification_id
        )
        return Response(NotificationOutput(notification).data)

    @extend_schema(
        operation_id="edit_notification",
        summary="Change a notification before it is sent, or while it is paused",
        description="A field that is missing stays as it is; null takes its default. A `pending`"
        " notification can be changed as a whole, but the kind of its audience stays: a send to a"
        " segment stays one. A notification that is `processing` and paused can be changed"
        " in its content, `name`, `labels`, `expires_at` and `rate_per_minute`, as soon as the"
        " calls under way have ended. If every field is as it was, nothing changes. Safe to"
        " repeat. The key needs the scopes `send` and `read`.",
        tags=[_TAG],
        request=EditInput,
        examples=[examples.EDIT],
        responses={
            200: OpenApiResponse(NotificationOutput, "As it is now.", [examples.READ]),
            **problem_responses(
                400,
                PlatformNotEnabled("target_platforms", Platform.IOS),
                SegmentNotFound(),
                CategoryUnknown("category"),
                CategoryRequired(),
                PayloadTooLarge(Platform.WEB, 4100, 3993),
                NotCombinable("segment_id", "A send to a segment stays one."),
                401,
                MissingScope(Scope.SEND),
                404,
                NotEditable(f"Notification {examples.ID} is sent."),
                StillSending(),
                DeliveriesDeleted(UUID(examples.ID), 30),
                TooManyPending("The channel has 10,000 notifications that wait to be sent."),
                413,
                415,
                429,
                503,
            ),
        },
    )
    def patch(self, request: Request, notification_id: UUID) -> Response:
        edited = notification_edit(
            channel=key_of(request).channel,
            notification_id=notification_id,
            changes=dict(request.data),
        )
        return Response(NotificationOutput(edited).data)


class NotificationDetailsView(ReadingView):
    @extend_schema(
        operation_id="get_notification_details",
        summary="Get everything about a notification",
        description="Its content, audience and times, the counts of each platform, and why"
        " recipients bounced. All numbers are of one moment, so the platforms add up to the"
        " notification's counts.",
        tags=[_TAG],
        responses={
            200: OpenApiResponse(NotificationDetailsOutput, "The details.", [examples.DETAILS]),
            **problem_responses(401, MissingScope(Scope.READ), 404, 429, 503),
        },
    )
    def get(self, request: Request, notification_id: UUID) -> Response:
        details = details_of(channel_id=key_of(request).channel_id, notification_id=notification_id)
        return Response(notification_details(details))


def _accepted(notification: Notification) -> dict[str, Any]:
    return {
        "success": True,
        "message": f"Notification stored for processing with id {notification.id}.",
        "notification_id": str(notification.id),
        "scheduled_at": format_timestamp(notification.scheduled_at),
        "status": NotificationStatus.PENDING.value,
    }
