"""Views of templates, for programs with an API key."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, own_channel, require_scope
from channels_app.models import Scope
from channels_app.selectors import ChannelNotFound
from notifications_app.api.template_serializers import TemplateInput, TemplateOutput
from notifications_app.errors import (
    IdempotencyKeyInFlight,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    TemplateNameTaken,
)
from notifications_app.models import Template
from notifications_app.sends.idempotency import IDEMPOTENCY_PARAMETER, idempotency_key, once
from notifications_app.sends.templates import (
    template_create,
    template_delete,
    template_get,
    template_page,
    template_update,
)
from pushsvc.common.errors import Fault, Invalid, MissingScope
from pushsvc.common.http.openapi import follow_ups, problem_responses
from pushsvc.common.http.paging import PAGE_DESCRIPTION, PAGE_PARAMETERS, read_page

_TAG: Final = "templates"
_GIVEN: Final[dict[str, Any]] = {
    "name": "Order shipped",
    "content": {
        "title": "Your order",
        "body": "It left our warehouse.",
        "ios": {"sound": "ding.wav"},
        "translations": {"de": {"title": "Ihre Bestellung"}},
    },
}
_SHOWN: Final = {
    "template_id": "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52",
    **_GIVEN,
    "created_at": "2026-11-20T15:11:00.123Z",
    "updated_at": "2026-11-20T15:11:00.123Z",
}
_INPUT: Final = OpenApiExample("A template", _GIVEN, request_only=True)
_OUTPUT: Final = OpenApiExample("A template", _SHOWN, response_only=True)
_BAD_CONTENT: Final = Invalid([Fault("content.soung", "unknown_field", "There is no such field.")])
_OF_ONE: Final = ("template_read", "template_update", "template_delete")
_IN_CHANNEL: Final = {"channel_id": "$request.path.channel_id"}
_REFUSED: Final = (401, MissingScope(Scope.MANAGE), ChannelNotFound(), 429, 503)


class _TemplatesView(KeyedView):
    permission_classes = (require_scope(Scope.MANAGE),)


class TemplateListView(_TemplatesView):
    @extend_schema(
        operation_id="template_list",
        summary="List the channel's templates, newest first",
        description=PAGE_DESCRIPTION,
        tags=[_TAG],
        parameters=PAGE_PARAMETERS,
        extensions=follow_ups(
            200, *_OF_ONE, template_id="$response.body#/0/template_id", **_IN_CHANNEL
        ),
        responses={
            200: OpenApiResponse(TemplateOutput(many=True), "A page.", [_OUTPUT]),
            **problem_responses(400, *_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        found, links = read_page(request, template_page, channel_id=channel.id)
        return Response([_shown(each) for each in found], headers=links)

    @extend_schema(
        operation_id="template_create",
        summary="Create a template",
        description="A template is a name and content. A send names it in `template_id`.",
        tags=[_TAG],
        parameters=[IDEMPOTENCY_PARAMETER],
        request=TemplateInput,
        examples=[_INPUT],
        extensions=follow_ups(
            201, *_OF_ONE, template_id="$response.body#/template_id", **_IN_CHANNEL
        ),
        responses={
            201: OpenApiResponse(TemplateOutput, "Created.", [_OUTPUT]),
            **problem_responses(
                _BAD_CONTENT,
                IdempotencyKeyInvalid(),
                *_REFUSED,
                TemplateNameTaken(),
                IdempotencyKeyInFlight(),
                413,
                415,
                IdempotencyKeyReused(),
            ),
        },
    )
    def post(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        given = TemplateInput.checked(request.data)
        created = once(
            channel_id=channel.id,
            key=idempotency_key(request),
            body=request.data,
            act=lambda: _shown(template_create(channel=channel, **given)),
        )
        return Response(created, status=201)


class TemplateView(_TemplatesView):
    @extend_schema(
        operation_id="template_read",
        summary="Get a template",
        description="Its name and its content, as they were stored last.",
        tags=[_TAG],
        responses={
            200: OpenApiResponse(TemplateOutput, "The template.", [_OUTPUT]),
            **problem_responses(404, *_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID, template_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        return Response(_shown(template_get(channel_id=channel.id, template_id=template_id)))

    @extend_schema(
        operation_id="template_update",
        summary="Replace a template's name and content",
        description="For the sends that are accepted from now on. What was accepted before keeps"
        " its content. Safe to repeat.",
        tags=[_TAG],
        request=TemplateInput,
        examples=[_INPUT],
        responses={
            200: OpenApiResponse(TemplateOutput, "Replaced.", [_OUTPUT]),
            **problem_responses(_BAD_CONTENT, 404, *_REFUSED, TemplateNameTaken(), 413, 415),
        },
    )
    def put(self, request: Request, channel_id: UUID, template_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        template = template_update(
            channel_id=channel.id, template_id=template_id, **TemplateInput.checked(request.data)
        )
        return Response(_shown(template))

    @extend_schema(
        operation_id="template_delete",
        summary="Delete a template",
        description="What was accepted with it keeps its content, also if it is scheduled. A second"
        " call answers 404.",
        tags=[_TAG],
        responses={
            204: OpenApiResponse(description="Deleted."),
            **problem_responses(404, *_REFUSED),
        },
    )
    def delete(self, request: Request, channel_id: UUID, template_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        template_delete(channel_id=channel.id, template_id=template_id)
        return Response(status=204)


def _shown(template: Template) -> dict[str, Any]:
    return dict(TemplateOutput(template).data)
