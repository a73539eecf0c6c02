"""Views of categories, for programs with an API key, and of preferences, for devices."""

from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import ChannelIdMissing, KeyedView, own_channel, require_scope
from channels_app.models import Scope
from channels_app.openapi import CHANNEL_ID_HEADER
from channels_app.selectors import ChannelNotFound
from pushsvc.common.errors import MissingScope
from pushsvc.common.http.openapi import follow_ups, problem_responses
from pushsvc.common.http.paging import PAGE_DESCRIPTION, PAGE_PARAMETERS, read_page
from subscriptions_app.api.category_serializers import (
    CategoryFields,
    CategoryInput,
    CategoryOutput,
    PreferencesInput,
    PreferencesOutput,
)
from subscriptions_app.api.views import BROWSER, DeviceView, count_refused
from subscriptions_app.categories.consent import category_page, device_preferences
from subscriptions_app.categories.services import category_archive, category_create, category_update
from subscriptions_app.errors import CategoryKeyTaken, CategoryUnknown, IdentityOff, IdentityRefused
from subscriptions_app.models import CATEGORY_KEY, Category
from subscriptions_app.people.services import person_preferences

_TAG: Final = "categories"
_CHANGED: Final[dict[str, Any]] = {
    "name": "Offers",
    "description": "At most once a week.",
    "default": False,
}
_GIVEN: Final = {"key": "offers", **_CHANGED}
_SHOWN: Final = {**_GIVEN, "position": 0, "created_at": "2026-11-20T15:11:00.123Z"}
_OUTPUT: Final = OpenApiExample("A category", _SHOWN, response_only=True)
_REFUSED: Final = (401, MissingScope(Scope.MANAGE), ChannelNotFound(), 429, 503)
_KEY: Final = OpenApiParameter(
    "category_key",
    {"type": "string", "pattern": f"^{CATEGORY_KEY}$"},
    OpenApiParameter.PATH,
    description="The key of the category.",
)
_PREFERENCE: Final = {
    "key": "offers",
    "name": "Offers",
    "description": "At most once a week.",
    "chosen": True,
}


class _CategoriesView(KeyedView):
    permission_classes = (require_scope(Scope.MANAGE),)


class CategoryListView(_CategoriesView):
    @extend_schema(
        operation_id="category_list",
        summary="List the channel's categories, in the order of their positions",
        description=PAGE_DESCRIPTION,
        tags=[_TAG],
        parameters=PAGE_PARAMETERS,
        responses={
            200: OpenApiResponse(CategoryOutput(many=True), "A page.", [_OUTPUT]),
            **problem_responses(400, *_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        found, links = read_page(request, category_page, channel_id=channel.id)
        return Response([_shown(each) for each in found], headers=links)

    @extend_schema(
        operation_id="category_create",
        summary="Create a category",
        description="A send names it in `category`; devices and people choose it. The key of an"
        " archived category restores that one, with the choices that were made.",
        tags=[_TAG],
        request=CategoryInput,
        examples=[OpenApiExample("A category", _GIVEN, request_only=True)],
        extensions=follow_ups(
            201,
            "category_update",
            "category_archive",
            channel_id="$request.path.channel_id",
            category_key="$response.body#/key",
        ),
        responses={
            201: OpenApiResponse(CategoryOutput, "Created.", [_OUTPUT]),
            **problem_responses(400, *_REFUSED, CategoryKeyTaken(), 413, 415),
        },
    )
    def post(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        category = category_create(channel=channel, **CategoryInput.checked(request.data))
        return Response(_shown(category), status=201)


class CategoryView(_CategoriesView):
    @extend_schema(
        operation_id="category_update",
        summary="Change a category",
        description="All but its key. A new `default` counts at once for those who chose nothing.",
        tags=[_TAG],
        parameters=[_KEY],
        request=CategoryFields,
        examples=[OpenApiExample("A category", _CHANGED, request_only=True)],
        responses={
            200: OpenApiResponse(CategoryOutput, "Changed.", [_OUTPUT]),
            **problem_responses(400, 404, *_REFUSED, 413, 415),
        },
    )
    def put(self, request: Request, channel_id: UUID, category_key: str) -> Response:
        channel = own_channel(request, channel_id)
        category = category_update(
            channel_id=channel.id, key=category_key, **CategoryFields.checked(request.data)
        )
        return Response(_shown(category))

    @extend_schema(
        operation_id="category_archive",
        summary="Archive a category",
        description="No send can name it any more, and no preferences show it. Choices are kept."
        " Sends that were accepted before still leave out who refuses it. A second call answers"
        " 404.",
        tags=[_TAG],
        parameters=[_KEY],
        responses={
            204: OpenApiResponse(description="Archived."),
            **problem_responses(404, *_REFUSED),
        },
    )
    def delete(self, request: Request, channel_id: UUID, category_key: str) -> Response:
        channel = own_channel(request, channel_id)
        category_archive(channel_id=channel.id, key=category_key)
        return Response(status=204)


class PreferencesView(DeviceView):
    limit_name = "preferences"

    @extend_schema(
        operation_id="preferences",
        summary="Read and change what a device or a person wants",
        description="Lists the channel's categories with what the device, or its person, chose,"
        " after `choices` took effect. For a device that is not known they are the defaults, and"
        " nothing is stored. A device of a person that proves itself with its `keys` or `auth` has"
        " the person's choices, and changes them for all devices of the person. Without proof, a"
        " choice counts for the device alone, until its person chooses. With `identity_token` in"
        " place of a device it is the person who reads and chooses, and who may opt out.",
        tags=["subscriptions"],
        auth=[],
        parameters=[CHANNEL_ID_HEADER],
        request=PreferencesInput,
        examples=[
            OpenApiExample(
                "A browser chooses",
                {
                    "endpoint": BROWSER["endpoint"],
                    "keys": BROWSER["keys"],
                    "choices": {"offers": True, "news": None},
                },
                request_only=True,
            )
        ],
        responses={
            200: OpenApiResponse(
                PreferencesOutput,
                "What it wants now.",
                [OpenApiExample("Chosen", {"categories": [_PREFERENCE]})],
            ),
            **problem_responses(
                400,
                CategoryUnknown("choices.offers"),
                ChannelIdMissing(),
                IdentityOff(),
                IdentityRefused(),
                ChannelNotFound(),
                413,
                415,
                429,
                503,
            ),
        },
    )
    def post(self, request: Request) -> Response:
        given = PreferencesInput.checked(request.data)
        if "token" not in given:
            wanted = device_preferences(channel=self.channel, **given)
            return Response({"categories": [asdict(each) for each in wanted]})
        try:
            wanted, is_out = person_preferences(channel=self.channel, **given)
        except IdentityRefused:
            count_refused(request)
            raise
        categories = [asdict(each) for each in wanted]
        return Response({"categories": categories, "opted_out": is_out})


def _shown(category: Category) -> dict[str, Any]:
    return dict(CategoryOutput(category).data)
