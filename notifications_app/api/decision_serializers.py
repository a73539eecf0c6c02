"""Serializers of tests of variants, and of their decisions."""

from typing import Any

from rest_framework import serializers

from notifications_app.content.values import TEST_METRICS
from notifications_app.models import Notification
from pushsvc.common.http.fields import StrictSerializer, Text, Timestamp
from pushsvc.common.timestamps import parse_timestamp


class WinnerInput(StrictSerializer):
    """Which variant goes to those who were not in the test."""

    variant = Text(min_length=1, max_length=32, help_text="The name of the variant.")


class WinnerOutput(serializers.Serializer[Any]):
    """That the test is decided."""

    notification_id = serializers.UUIDField(help_text="The notification's id.")
    variant = serializers.CharField(help_text="The name of the variant.")


class AbTestOutput(serializers.Serializer[Any]):
    """A test of variants, and its decision."""

    share = serializers.IntegerField(help_text="Percent of the audience that the test is for.")
    minutes = serializers.IntegerField(help_text="How long it takes, without pauses.")
    metric = serializers.ChoiceField(TEST_METRICS, help_text="The events that are compared.")
    inconclusive = serializers.CharField(help_text="As requested.")
    decides_at = Timestamp(
        allow_null=True,
        help_text="When it is decided by itself; null before the start, and once it is decided.",
    )
    on_hold = serializers.BooleanField(help_text="Whether it waits for a choice.")
    variant = serializers.CharField(
        allow_null=True, help_text="The variant that goes to the rest; null until it is decided."
    )
    decided_at = Timestamp(allow_null=True, help_text="When it was decided.")
    decided_by = serializers.CharField(
        allow_null=True,
        help_text="`difference`: its numbers. `leader`, `default`: as `inconclusive` says."
        " `choice`: somebody chose. See docs/ab-tests.md.",
    )
    p_value = serializers.FloatField(
        allow_null=True,
        help_text="Of the comparison with the best variant at the decision, by Holm's correction;"
        " null until then, and if there were too few numbers.",
    )


def ab_test(notification: Notification) -> dict[str, Any] | None:
    if notification.test is None:
        return None
    decision = notification.decision or {}
    winner = notification.winner
    is_decided = winner is not None
    names = [each["name"] for each in notification.content.variants]
    is_running = notification.is_deciding
    return {
        **notification.test,
        "decides_at": notification.decides_at if is_running else None,
        "on_hold": is_running and bool(decision),
        "variant": None if winner is None else names[winner],
        "decided_at": parse_timestamp(decision["at"]) if is_decided else None,
        "decided_by": decision["by"] if is_decided else None,
        "p_value": decision.get("p_value"),
    }
