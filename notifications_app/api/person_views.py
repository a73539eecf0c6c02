"""Views of one person, for programs with an API key.

They are in this app, because an erasure and an export also concern notifications. External ids are
texts of the owner, so they are a query parameter and not a part of the path.
"""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, own_channel, require_scope
from channels_app.models import Scope
from channels_app.selectors import ChannelNotFound
from notifications_app.api.person_serializers import (
    ErasedOutput,
    PersonInput,
    PersonKnown,
    PersonOutput,
)
from notifications_app.erasure import person_forget
from notifications_app.reporting.stored_data import person_data
from pushsvc.common.errors import FieldError, Invalid, MissingScope, NotFound
from pushsvc.common.http.openapi import problem_responses
from subscriptions_app.errors import CategoryUnknown
from subscriptions_app.models import Person, Subscription
from subscriptions_app.people.services import (
    person_change,
    person_devices,
    person_exported,
    person_get,
)
from subscriptions_app.tags.selectors import device_tags

_TAG: Final = "people"
_ID: Final = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"
_MOMENT: Final = "2026-11-20T15:11:00.123Z"
_SHOWN: Final[dict[str, Any]] = {
    "external_id": "user-42",
    "created_at": _MOMENT,
    "opted_out": False,
    "choices": {"offers": False},
    "devices": [
        {
            "subscription_id": _ID,
            "platform": "web",
            "active": True,
            "created_at": _MOMENT,
            "last_seen_at": _MOMENT,
            "timezone": "Europe/Berlin",
            "language": "de-AT",
            "attributes": {"plan": "pro"},
            "tags": ["team-7"],
        }
    ],
}
_PERSON: Final = OpenApiExample("A person", _SHOWN, response_only=True)
_CHANGE: Final = OpenApiExample(
    "Nothing more, and a choice back",
    {"opted_out": True, "choices": {"offers": None}},
    request_only=True,
)
_ERASED: Final = OpenApiExample("Erased", {"erased": {"devices": 3}}, response_only=True)
_EXTERNAL_ID: Final = OpenApiParameter(
    "external_id",
    OpenApiTypes.STR,
    required=True,
    description="The owner's id of the user.",
)
_REFUSED: Final = (401, MissingScope(Scope.SUBSCRIBERS), ChannelNotFound(), 404, 429, 503)


class _PersonView(KeyedView):
    permission_classes = (require_scope(Scope.SUBSCRIBERS),)


class PersonView(_PersonView):
    @extend_schema(
        operation_id="get_person",
        summary="Get a person",
        description="With all devices that are stored, active or not.",
        tags=[_TAG],
        parameters=[_EXTERNAL_ID],
        responses={
            200: OpenApiResponse(PersonOutput, "The person.", [_PERSON]),
            **problem_responses(400, *_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        person = person_get(channel_id=channel.pk, external_id=_external_id(request))
        return Response(_shown(person))

    @extend_schema(
        operation_id="update_person",
        summary="Change a person and all devices of the person",
        description="All of it or nothing. `opted_out` true ends all devices, and those that"
        " register later; after false they are active again when they register next. `attributes`"
        " and tags are changed on each device that the person has now. Safe to repeat.",
        tags=[_TAG],
        parameters=[_EXTERNAL_ID],
        request=PersonInput,
        examples=[_CHANGE],
        responses={
            200: OpenApiResponse(PersonOutput, "As it is now.", [_PERSON]),
            **problem_responses(400, CategoryUnknown("choices.offers"), *_REFUSED, 413, 415),
        },
    )
    def patch(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        person = person_change(
            channel=channel,
            external_id=_external_id(request),
            **PersonInput.checked(request.data),
        )
        return Response(_shown(person))

    @extend_schema(
        operation_id="erase_person",
        summary="Erase a person",
        description="Deletes the person and everything about the addresses of the person's devices."
        " docs/privacy.md describes what is kept. A second call returns 404.",
        tags=[_TAG],
        parameters=[_EXTERNAL_ID],
        responses={
            200: OpenApiResponse(ErasedOutput, "Erased.", [_ERASED]),
            **problem_responses(400, *_REFUSED),
        },
    )
    def delete(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        devices = person_forget(channel=channel, external_id=_external_id(request))
        return Response({"erased": {"devices": devices}})


class PersonExportView(_PersonView):
    @extend_schema(
        operation_id="export_person",
        summary="Get everything that is stored of a person",
        description="With addresses, keys, and outcomes as far as they are kept. The audit log"
        " says that it was exported.",
        tags=[_TAG],
        parameters=[_EXTERNAL_ID],
        responses={
            200: OpenApiResponse(PersonKnown, "All of it."),
            **problem_responses(400, *_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        person = person_get(channel_id=channel.pk, external_id=_external_id(request))
        person_exported(person)
        return Response(person_data(person))


def _external_id(request: Request) -> str:
    """The query's external id. Raises Invalid if it is missing, and NotFound if it is malformed."""
    text = request.query_params.get("external_id")
    if text is None:
        raise Invalid([FieldError("external_id", "required", "This parameter is required.")])
    if "\x00" in text:
        raise NotFound("The channel has no person with this `external_id`.")
    return text


def _shown(person: Person) -> dict[str, Any]:
    devices = person_devices(person)
    tags = device_tags([each.pk for each in devices])
    shown = PersonOutput(
        {
            "external_id": person.external_id,
            "created_at": person.created_at,
            "opted_out": person.opted_out_at is not None,
            "choices": person.choices,
            "devices": [_device(each, tags.get(each.pk, [])) for each in devices],
        }
    )
    return dict(shown.data)


def _device(device: Subscription, tags: list[str]) -> dict[str, Any]:
    return {
        "subscription_id": device.pk,
        "platform": device.platform,
        "active": device.expired_at is None,
        "created_at": device.created_at,
        "last_seen_at": device.registered_at,
        "timezone": device.timezone,
        "language": device.language,
        "attributes": device.attributes,
        "tags": tags,
    }
