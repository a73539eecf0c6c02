"""The fields of a send that name its audience."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext
from rest_framework import serializers
from rest_framework.settings import api_settings
from typing_extensions import override

from notifications_app.content.values import AUDIENCE_FIELDS, TargetId
from notifications_app.errors import NotCombinable
from notifications_app.sends.personal_schema import Vars
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.fields import Id, StrictSerializer, refuse
from subscriptions_app.people.fields import ExternalId
from subscriptions_app.segments.rules import rule_errors


class RuleField(serializers.JSONField):
    """A rule as JSON. Each error has its own path."""

    @override
    def to_internal_value(self, data: object) -> Any:
        errors: dict[str, list[serializers.ErrorDetail]] = {}
        for error in rule_errors(data, ""):
            path = error.attr.removeprefix(".") or api_settings.NON_FIELD_ERRORS_KEY
            errors.setdefault(path, []).append(serializers.ErrorDetail(error.detail, error.code))
        if errors:
            raise serializers.ValidationError(errors)
        return data


class TargetInput(StrictSerializer):
    """A person or a subscription."""

    external_id = ExternalId(required=False, help_text="All devices of this person.")
    subscription_id = Id(required=False, help_text="This subscription alone.")
    vars = Vars(required=False, help_text="Its own values for placeholders, above the send's.")

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs.keys() - {"vars"}) != 1:
            refuse(
                "not_combinable", gettext("Must have either `external_id` or `subscription_id`.")
            )
        return attrs


def pop_targets(given: dict[str, Any]) -> tuple[TargetId, ...]:
    """Removes the fields that name targets from a checked send, and returns the targets in the
    order of the send, without repetitions. Raises NotCombinable for a send with several audiences,
    and Invalid for a target that is named twice with different values."""
    named = [name for name in AUDIENCE_FIELDS if given[name] is not None]
    if len(named) > 1:
        raise NotCombinable(
            named[1],
            gettext("A send has one audience. This one also names `%(name)s`.")
            % {"name": named[0]},
        )
    people = [TargetId(external_id=id_) for id_ in given.pop("external_ids") or ()]
    devices = [TargetId(subscription_id=id_) for id_ in given.pop("subscription_ids") or ()]
    both = [_target(each) for each in given.pop("targets") or ()]
    known: dict[Any, TargetId] = {}
    for index, each in enumerate(both):
        if known.setdefault((each.external_id, each.subscription_id), each) != each:
            detail = gettext("It is named before, with other values.")
            raise Invalid([FieldError(f"targets.{index}", "given_twice", detail)])
    return tuple(dict.fromkeys([*people, *devices, *both]))


def _target(given: Mapping[str, Any]) -> TargetId:
    """A target. Empty `vars` are the same as none."""
    return TargetId(**{**given, "vars": given.get("vars") or None})
