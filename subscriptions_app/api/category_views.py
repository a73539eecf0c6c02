"""Views of categories, for programs with an API key, and of preferences, for devices."""

from dataclasses import asdict
from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import ChannelIdMissing, KeyedView
from channels_app.openapi import CHANNEL_ID_HEADER
from channels_app.resources import Resource
from channels_app.selectors import ChannelDeleted, ChannelNotFound
from pushsvc.common.http.openapi import problem_responses
from subscriptions_app.api.category_serializers import (
    CategoryFields,
    CategoryInput,
    CategoryOutput,
    PreferencesInput,
    PreferencesOutput,
)
from subscriptions_app.categories.consent import category_page, device_preferences
from subscriptions_app.categories.services import category_archive, category_create, category_update
from subscriptions_app.errors import CategoryKeyTaken, CategoryUnknown, IdentityOff, IdentityRefused
from subscriptions_app.http import BROWSER, DeviceView, count_refused
from subscriptions_app.models import CATEGORY_KEY
from subscriptions_app.people.services import person_preferences

_CHANGED: Final[dict[str, Any]] = {
    "name": "Offers",
    "description": "At most once a week.",
    "default": False,
}
_GIVEN: Final = {"key": "offers", **_CHANGED}
_CATEGORY: Final = Resource(
    "category",
    "categories",
    tag="categories",
    id_name="category_key",
    id_field="key",
    input=CategoryInput,
    output=CategoryOutput,
    given=_GIVEN,
    shown={**_GIVEN, "position": 0, "created_at": "2026-11-20T15:11:00.123Z"},
    follow_ups=("update_category", "archive_category"),
    parameters=[
        OpenApiParameter(
            "category_key",
            {"type": "string", "pattern": f"^{CATEGORY_KEY}$"},
            OpenApiParameter.PATH,
            description="The key of the category.",
        )
    ],
)
_PREFERENCE: Final = {
    "key": "offers",
    "name": "Offers",
    "description": "At most once a week.",
    "chosen": True,
}


class CategoryListView(KeyedView):
    permission_classes = _CATEGORY.permissions
    get = _CATEGORY.list(
        category_page, "List the channel's categories, in the order of their positions"
    )
    post = _CATEGORY.create(
        category_create,
        "Create a category",
        "A send names it in `category`; devices and people choose it. The key of an archived"
        " category restores that one, with the choices that were made.",
        CategoryKeyTaken(),
    )


class CategoryView(KeyedView):
    permission_classes = _CATEGORY.permissions
    put = _CATEGORY.update(
        lambda category_key, **values: category_update(key=category_key, **values),
        "Change a category",
        "All but its key. A new `default` counts at once for those who chose nothing.",
        input=CategoryFields,
        given=_CHANGED,
    )
    delete = _CATEGORY.delete(
        lambda category_key, channel_id: category_archive(channel_id=channel_id, key=category_key),
        "Archive a category",
        "No send can name it any more, and no preferences show it. Choices are kept. Sends that"
        " were accepted before still skip devices that refuse it. A second call returns 404.",
        operation="archive",
    )


class PreferencesView(DeviceView):
    limit_name = "preferences"

    @extend_schema(
        operation_id="update_preferences",
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
                ChannelDeleted(),
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
