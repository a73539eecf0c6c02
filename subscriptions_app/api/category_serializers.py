"""Serializers of categories, and of what devices and people choose."""

import re
from typing import Any, Final

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from pushsvc.common.http.fields import Flag, StrictSerializer, Text, Timestamp, WholeNumber, refuse
from subscriptions_app.categories.fields import Choices
from subscriptions_app.http import ProvableInput
from subscriptions_app.models import (
    CATEGORY_KEY,
    MAX_CATEGORY_DESCRIPTION,
    MAX_CATEGORY_KEY,
    MAX_CATEGORY_NAME,
    MAX_POSITION,
    Category,
)
from subscriptions_app.people.identity_tokens import MAX_TOKEN

_KEY: Final = re.compile(CATEGORY_KEY, re.ASCII)


@extend_schema_field({"type": "string", "pattern": f"^{CATEGORY_KEY}$"})
class CategoryKey(Text):
    """How sends and choices name a category."""

    @override
    def to_internal_value(self, data: object) -> str:
        text = super().to_internal_value(data)
        if not _KEY.fullmatch(text):
            refuse(
                "malformed",
                gettext("Must be 1 to %(most)s of: a-z 0-9 _ -") % {"most": MAX_CATEGORY_KEY},
            )
        return text


class CategoryFields(StrictSerializer):
    """The fields of a category that can be changed."""

    name = Text(min_length=1, max_length=MAX_CATEGORY_NAME, help_text="For people.")
    description = Text(
        max_length=MAX_CATEGORY_DESCRIPTION, default="", help_text="For people: what they get."
    )
    default = Flag(help_text="Whether those who chose nothing get its notifications.")
    position = WholeNumber(
        min=0,
        max=MAX_POSITION,
        required=False,
        help_text="Lists are in this order. A new category comes last.",
    )


class CategoryInput(CategoryFields):
    """A new category."""

    key = CategoryKey(min_length=1, help_text="For `category` of a send. It never changes.")


class CategoryOutput(serializers.Serializer[Category]):
    """A category."""

    key = serializers.CharField(help_text="For `category` of a send.")
    name = serializers.CharField(help_text="For people.")
    description = serializers.CharField(help_text="For people: what they get.")
    default = serializers.BooleanField(
        source="chosen_by_default",
        help_text="Whether those who chose nothing get its notifications.",
    )
    position = serializers.IntegerField(help_text="Lists are in this order.")
    created_at = Timestamp(help_text="When the category was created.")


class PersonPreferencesInput(StrictSerializer):
    """A person, and what they choose. Undeclared fields are ignored, as for devices."""

    refuse_unknown = False

    identity_token = Text(min_length=1, max_length=MAX_TOKEN)
    choices = Choices(required=False)
    opted_out = Flag(required=False)

    @override
    def to_internal_value(self, data: dict[str, Any]) -> Any:
        known = super().to_internal_value(data)
        return {
            "token": known["identity_token"],
            "changes": known.get("choices"),
            "opted_out": known.get("opted_out"),
        }


class PreferencesInput(ProvableInput):
    """A device, and what it chooses. Undeclared fields are ignored, because browsers add their
    own, but a misspelling of a declared field is refused."""

    choices = Choices(required=False)
    opted_out = Flag(
        required=False, help_text="Only with `identity_token`: whether all devices get nothing."
    )

    of_person = PersonPreferencesInput

    @override
    def to_internal_value(self, data: dict[str, Any]) -> Any:
        known = super().to_internal_value(data)
        if "opted_out" in known:
            detail = "Only a person can opt out: send `identity_token`."
            error = serializers.ErrorDetail(detail, code="not_combinable")
            raise serializers.ValidationError({"opted_out": [error]})
        return known | {"changes": known.pop("choices", None)}


class PreferenceOutput(serializers.Serializer[Any]):
    """A category, and whether its notifications are wanted."""

    key = serializers.CharField(help_text="The category's key.")
    name = serializers.CharField(help_text="For people.")
    description = serializers.CharField(help_text="For people: what they get.")
    chosen = serializers.BooleanField(help_text="By choice, or by default.")


class PreferencesOutput(serializers.Serializer[Any]):
    """What the device or the person wants now."""

    categories = PreferenceOutput(many=True, help_text="All of the channel, in its order.")
    opted_out = serializers.BooleanField(
        required=False, help_text="Only of a person: whether all devices get nothing."
    )
