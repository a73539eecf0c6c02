"""Serializers of notifications and of the events that devices report."""

from typing import Any, Final

from rest_framework import serializers
from typing_extensions import override

from channels_app.audit import is_key_name
from notifications_app.api.decision_serializers import AbTestOutput, ab_test
from notifications_app.content.fields import Field, Type
from notifications_app.content.values import CONTENT, AudienceKind
from notifications_app.events import MAX_EVENTS, EventKind
from notifications_app.models import MAX_LABEL, Notification
from notifications_app.reporting.details import Details, VariantResult
from notifications_app.reporting.targets import TargetResult, TargetState
from notifications_app.sends.audience import RuleField
from notifications_app.sends.dry_run import DryRun, PlatformDryRun, missed_words
from notifications_app.sends.personal_schema import Vars
from notifications_app.states import APART, NotificationStatus
from pushsvc.common.http.fields import Choice, ListOf, StrictSerializer, Text, Timestamp
from pushsvc.common.platforms import PLATFORM_VALUES


class NotificationFilter(StrictSerializer):
    """Which notifications a list has. Other parameters choose the page."""

    refuse_unknown = False
    never_null = frozenset({"status", "label", "scheduled_after", "scheduled_before"})

    status = Choice(
        NotificationStatus.values,
        required=False,
        help_text="Only notifications with this status.",
    )
    label = Text(  # type: ignore[assignment] # DRF removes it from the class
        required=False,
        min_length=1,
        max_length=MAX_LABEL,
        help_text="Only notifications with this label. Their counts add up to its results.",
    )
    scheduled_after = Timestamp(
        required=False,
        help_text="Only notifications that are scheduled for this time or later.",
    )
    scheduled_before = Timestamp(
        required=False,
        help_text="Only notifications that are scheduled for an earlier time than this.",
    )


class SendOutput(serializers.Serializer[Any]):
    """That the notification is accepted."""

    success = serializers.BooleanField(help_text="Always true.")
    message = serializers.CharField(help_text="For people; holds the notification's id.")
    notification_id = serializers.UUIDField(help_text="The notification's id.")
    scheduled_at = Timestamp(help_text="When sending starts.")
    status = serializers.ChoiceField(NotificationStatus.values, help_text="Always `pending`.")


class ServiceDryRunOutput(serializers.Serializer[Any]):
    """What a push service would get."""

    payload_bytes = serializers.IntegerField(help_text="Size of the message for one device.")
    payload_limit = serializers.IntegerField(
        help_text=(
            "The most bytes that it takes for each of its devices. A larger message is sent all "
            "the same, and bounces as `size_refused` where it is refused."
        )
    )


class PlatformDryRunOutput(serializers.Serializer[Any]):
    """What one platform would get."""

    payload_bytes = serializers.IntegerField(help_text="Size of the message for one device.")
    audience = serializers.IntegerField(help_text="Active subscriptions that it would reach.")
    estimated = serializers.BooleanField(help_text="Whether `audience` is an estimate.")
    largest_sampled_bytes = serializers.IntegerField(
        required=False,
        help_text="With `personalize`: the largest message for one of 20 devices, if it has any.",
    )
    push_services = serializers.DictField(
        child=ServiceDryRunOutput(),
        required=False,
        help_text="Of web: the push services of the newest subscriptions in the audience.",
    )


class UnknownOutput(serializers.Serializer[Any]):
    """Ids that the channel does not have."""

    external_ids = serializers.ListField(
        child=serializers.CharField(), help_text="Nobody was ever linked to them."
    )
    subscription_ids = serializers.ListField(
        child=serializers.UUIDField(), help_text="Of no subscription of the channel."
    )


class DryRunReleaseOutput(serializers.Serializer[Any]):
    """A moment at which it is time for part of the audience."""

    release_at = Timestamp(help_text="Nobody of it is sent the notification before.")
    timezones = serializers.IntegerField(help_text="In how many time zones its devices are.")
    platforms = serializers.ListField(
        child=serializers.ChoiceField(PLATFORM_VALUES), help_text="On which they are."
    )


class DryRunSizeOutput(serializers.Serializer[Any]):
    """A number of active subscriptions."""

    size = serializers.IntegerField(help_text="How many.")
    estimated = serializers.BooleanField(help_text="Whether `size` is an estimate.")


class DryRunOutput(serializers.Serializer[Any]):
    """What a send would do."""

    platforms = serializers.DictField(child=PlatformDryRunOutput(), help_text="By target platform.")
    releases = DryRunReleaseOutput(
        many=True,
        required=False,
        help_text="For a send by local time or with quiet hours: when it is sent, the earliest"
        " first.",
    )
    unknown = UnknownOutput(
        required=False, help_text="For a send to targets: ids that the channel does not have."
    )
    detail = serializers.CharField(
        required=False, help_text="On which other platforms the targets have devices."
    )
    capped = DryRunSizeOutput(
        required=False,
        help_text="With caps: active subscriptions of the audience that would be left out now.",
    )
    takes_at_least_seconds = serializers.IntegerField(
        required=False,
        help_text="For a send with a rate: how long after the first call the last one begins.",
    )


def dry_run_output(found: DryRun) -> dict[str, Any]:
    """The body of the response. Only sends to targets have `unknown` and `detail`, only sends with
    a rate `takes_at_least_seconds`, only sends with caps `capped`."""
    output: dict[str, Any] = {
        "platforms": {platform: _platform(each) for platform, each in found.platforms.items()}
    }
    if found.unknown is not None:
        output["unknown"] = UnknownOutput(found.unknown).data
    if found.releases:
        output["releases"] = DryRunReleaseOutput(found.releases, many=True).data
    if found.missed:
        output["detail"] = missed_words(found)
    if found.capped is not None:
        output["capped"] = DryRunSizeOutput(found.capped).data
    if found.takes_at_least_seconds is not None:
        output["takes_at_least_seconds"] = found.takes_at_least_seconds
    return output


def _platform(found: PlatformDryRun) -> dict[str, Any]:
    output: dict[str, Any] = {
        "payload_bytes": found.payload_bytes,
        "audience": found.audience.size,
        "estimated": found.audience.estimated,
    }
    if found.largest_sampled is not None:
        output["largest_sampled_bytes"] = found.largest_sampled
    if found.services:
        output["push_services"] = {
            name: ServiceDryRunOutput(each).data for name, each in found.services.items()
        }
    return output


class EventInput(StrictSerializer):
    """An event of one delivery."""

    token = Text(help_text="The tracking token of the message.")
    event = Choice(EventKind.values, help_text="What happened to the notification.")
    action = Text(default="", help_text="Of a click: the id of the button that was clicked.")


class EventsInput(StrictSerializer):
    """Events of devices. Unknown fields are refused, because an app may have misspelt one."""

    events = ListOf(EventInput(), max_length=MAX_EVENTS, help_text="In any order.")

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {
            "events": [(each["token"], each["event"], each["action"]) for each in attrs["events"]]
        }


class CancelOutput(serializers.Serializer[Any]):
    """That the notification is cancelled."""

    success = serializers.BooleanField(help_text="Always true.")
    message = serializers.CharField(help_text="For people; names the id and the title.")
    notificationId = serializers.UUIDField(  # noqa: N815 (the interface's name)
        help_text="The notification's id."
    )


class PausedOutput(serializers.Serializer[Any]):
    """Whether the notification is paused."""

    notification_id = serializers.UUIDField(help_text="The notification's id.")
    paused = serializers.BooleanField(help_text="Whether it is paused now.")


class StoppedOutput(serializers.Serializer[Any]):
    """That the notification is stopped."""

    notification_id = serializers.UUIDField(help_text="The notification's id.")
    stopped = serializers.BooleanField(help_text="Always true.")


class NotificationOutput(serializers.Serializer[Notification]):
    """A notification with its counts. Text that was not given is ""."""

    notification_id = serializers.UUIDField(source="id", help_text="The notification's id.")
    channel_id = serializers.UUIDField(help_text="The channel's id.")
    title = serializers.CharField(help_text="Shown above the main text.")
    body = serializers.CharField(help_text="Main text.")
    icon = serializers.CharField(help_text="URL of the icon image.")
    url = serializers.CharField(help_text="Destination opened on click.")
    recipient_count = serializers.IntegerField(help_text="Grows while recipients are counted.")
    delivered_count = serializers.IntegerField(help_text="Accepted by the push service.")
    bounced_count = serializers.IntegerField(help_text="Ended without being delivered.")
    clicked_count = serializers.IntegerField(help_text="Recipients that clicked.")
    scheduled_at = Timestamp(help_text="When sending starts or started.")
    created_at = Timestamp(help_text="When the send was accepted.")
    status = serializers.ChoiceField(NotificationStatus.values, help_text="See docs/states.md.")
    target_platforms = serializers.ListField(
        child=serializers.ChoiceField(PLATFORM_VALUES),
        help_text="As requested, without duplicates.",
    )
    segment_id = serializers.UUIDField(allow_null=True, help_text="null: not to a segment.")


class NotificationListedOutput(NotificationOutput):
    channel_id = None  # type: ignore[assignment] # DRF's way to omit a field of the base class


class AudienceOutput(serializers.Serializer[Any]):
    """Whom the notification is for."""

    kind = serializers.ChoiceField(
        [each.value for each in AudienceKind],
        help_text="`subscription`: a test from the console, for one subscription.",
    )
    segment_id = serializers.UUIDField(allow_null=True, help_text="With the kind `segment`.")
    category = serializers.CharField(
        allow_null=True, help_text="The category that the send names; null: nobody can refuse it."
    )
    rule = RuleField(allow_null=True, help_text="With the kind `rule`.")
    replaces = serializers.UUIDField(
        allow_null=True, help_text="With the kind `correction`: the notification that it corrects."
    )
    subscription_id = serializers.UUIDField(
        allow_null=True, help_text="With the kind `subscription`."
    )


class TimingOutput(serializers.Serializer[Any]):
    """When the notification was sent."""

    scheduled_at = Timestamp(help_text="When it is due; by local time, in the first time zone.")
    started_at = Timestamp(allow_null=True, help_text="When it changed to `processing`.")
    deadline_at = Timestamp(
        allow_null=True, help_text="When its time to live ends; null until it starts."
    )
    expires_at = Timestamp(
        allow_null=True, help_text="As requested: no device is sent it afterwards."
    )
    finished_at = Timestamp(
        allow_null=True, help_text="When it changed to `sent`, `failed` or `cancelled`."
    )
    local_at = serializers.CharField(
        allow_null=True,
        help_text="As requested: the time where the device is; null: the same moment for all.",
    )
    quiet_hours = serializers.DictField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="In force: from and to when nobody is sent it, by the clock where the device is.",
    )
    zones_too_late = serializers.IntegerField(
        help_text="Time zones whose devices get nothing, because it expires before their time.",
    )


class ContentOutput(serializers.Serializer[Any]):
    """The fields of a send. Text that was not given is ""."""

    @override
    def get_fields(self) -> dict[str, Any]:
        return {name: _content_field(each) for name, each in CONTENT.items()}


def _content_field(each: Field) -> Any:
    match each.type:
        case Type.NUMBER:
            return serializers.IntegerField(help_text=each.help)
        case Type.FLAG:
            return serializers.BooleanField(help_text=each.help)
        case Type.CHOICE:
            return serializers.ChoiceField(list(each.choices), help_text=each.help)
        case Type.TEXTS:
            return serializers.DictField(child=serializers.CharField(), help_text=each.help)
        case Type.VARS:
            return Vars(help_text=each.help)
        case Type.ACTIONS:
            texts = serializers.DictField(child=serializers.CharField())
            return serializers.ListField(child=texts, help_text=each.help)
        case Type.WEB | Type.ANDROID | Type.IOS:
            return serializers.DictField(help_text=each.help)
        case Type.VARIANTS:
            return serializers.ListField(child=serializers.DictField(), help_text=each.help)
        case Type.TRANSLATIONS:
            return serializers.DictField(child=serializers.DictField(), help_text=each.help)
    return serializers.CharField(help_text=each.help)


class PlatformDetailsOutput(serializers.Serializer[Any]):
    """The counts of one platform."""

    recipient_count = serializers.IntegerField(help_text="Grows until `planned` is true.")
    delivered_count = serializers.IntegerField(help_text="Accepted by the push service.")
    bounced_count = serializers.IntegerField(help_text="Ended without being delivered.")
    stopped_count = serializers.IntegerField(
        help_text="Of `bounced_count`: the notification was stopped before."
    )
    opted_out_count = serializers.IntegerField(
        help_text="Of `bounced_count`: they refused the category before."
    )
    expired_count = serializers.IntegerField(
        help_text="Of `bounced_count`: not delivered within the time to live."
    )
    planned = serializers.BooleanField(help_text="Whether all recipients are counted.")


class LeftOutOutput(serializers.Serializer[Any]):
    """Devices of the audience that did not become recipients."""

    opted_out = serializers.IntegerField(help_text="They, or their person, refuse the category.")
    capped = serializers.IntegerField(help_text="A cap excludes them. See docs/caps.md.")
    repeated = serializers.IntegerField(help_text="Their schedule contacted them lately.")


class ReleaseOutput(serializers.Serializer[Any]):
    """Part of the audience that is sent from one moment on."""

    release_at = Timestamp(help_text="Nobody of it is sent the notification before.")
    platforms = serializers.ListField(
        child=serializers.ChoiceField(PLATFORM_VALUES), help_text="Its target platforms."
    )
    planned = serializers.BooleanField(help_text="Whether all its recipients are counted.")
    recipient_count = serializers.IntegerField(help_text="Grows until `planned` is true.")


class ReasonOutput(serializers.Serializer[Any]):
    """How many recipients bounced for a reason."""

    platform = serializers.ChoiceField(PLATFORM_VALUES, help_text="Of the recipients.")
    code = serializers.CharField(help_text="Why they bounced, as docs/results.md lists.")
    count = serializers.IntegerField(help_text="How many recipients of the platform.")


class VariantOutput(serializers.Serializer[Any]):
    """The result of a variant. The counts of all variants add up to those of the notification."""

    name = serializers.CharField(help_text="As requested.")
    weight = serializers.IntegerField(help_text="As requested.")
    recipient_count = serializers.IntegerField(help_text="Recipients that get it.")
    delivered_count = serializers.IntegerField(help_text="Accepted by the push service.")
    bounced_count = serializers.IntegerField(help_text="Ended without being delivered.")
    received_count = serializers.IntegerField(help_text="Recipients that reported `received`.")
    clicked_count = serializers.IntegerField(help_text="Recipients that reported `clicked`.")
    dismissed_count = serializers.IntegerField(help_text="Recipients that reported `dismissed`.")
    clicked_between = serializers.ListField(
        child=serializers.FloatField(),
        help_text="The interval of 95 % (Wilson) for `clicked_count` by `delivered_count`.",
    )


class NotificationDetailsOutput(serializers.Serializer[Any]):
    """A notification with all that is known of its result."""

    notification_id = serializers.UUIDField(help_text="As the send returned it.")
    status = serializers.ChoiceField(
        NotificationStatus.values, help_text="As docs/states.md explains."
    )
    name = serializers.CharField(help_text='For staff; "" if the send had none.')
    labels = serializers.ListField(child=serializers.CharField(), help_text="For staff.")
    paused = serializers.BooleanField(help_text="Whether it waits to be resumed.")
    stopped = serializers.BooleanField(help_text="Whether it was stopped while it was processing.")
    edited_at = Timestamp(allow_null=True, help_text="When it was changed last.")
    template_id = serializers.UUIDField(
        allow_null=True, help_text="The template that the send named; it may be deleted since."
    )
    api_key = serializers.CharField(
        allow_null=True,
        help_text="The public part of the key that sent it; null if staff sent it in the console.",
    )
    audience = AudienceOutput(help_text="The recipients.")
    corrected_by = serializers.ListField(
        child=serializers.UUIDField(),
        help_text="The notifications that correct it, the newest first.",
    )
    timing = TimingOutput(help_text="When it is and was sent.")
    content = ContentOutput(help_text="What devices get.")
    platforms = serializers.DictField(
        child=PlatformDetailsOutput(), help_text="By target platform; all counts are of one moment."
    )
    left_out = LeftOutOutput(help_text="Who of the audience is no recipient; grows as `platforms`.")
    releases = ReleaseOutput(
        many=True, help_text="From when it is sent; empty until it starts, the earliest first."
    )
    reasons = ReasonOutput(
        many=True, help_text="Why recipients bounced, the most frequent reason first."
    )
    limited_by = serializers.CharField(
        allow_null=True,
        help_text="The push service that accepts only some messages a minute of the channel, while"
        " recipients wait for it; see docs/webpush.md.",
    )
    rate_per_minute = serializers.IntegerField(
        allow_null=True,
        help_text="At most so many recipients a minute, over all platforms; null: as fast as"
        " possible. The channel's rate counts as it is at the start.",
    )
    received_count = serializers.IntegerField(help_text="Recipients that reported `received`.")
    clicked_count = serializers.IntegerField(help_text="Recipients that reported `clicked`.")
    dismissed_count = serializers.IntegerField(help_text="Recipients that reported `dismissed`.")
    actions_clicked = serializers.DictField(
        child=serializers.IntegerField(), help_text="Recipients that clicked each button first."
    )
    variants = VariantOutput(
        many=True, help_text="The results of its variants; empty if it has none."
    )
    test = AbTestOutput(allow_null=True, help_text="How its variants are tested; null: not.")


class TargetOutput(serializers.Serializer[TargetResult]):
    """A person or a subscription that the send named, and what became of it."""

    external_id = serializers.CharField(allow_null=True, help_text="As the send named it.")
    subscription_id = serializers.UUIDField(allow_null=True, help_text="As the send named it.")
    state = serializers.ChoiceField(
        [each.value for each in TargetState],
        help_text="`reached`: it has a recipient. See docs/direct.md.",
    )
    devices = serializers.IntegerField(help_text="How many of its devices became recipients.")


def notification_details(details: Details) -> dict[str, Any]:
    """The body of the response."""
    found = details.notification
    return dict(
        NotificationDetailsOutput(
            {
                "notification_id": found.id,
                "status": found.status,
                "paused": found.is_paused,
                "stopped": found.is_stopped,
                "edited_at": found.edited_at,
                "template_id": found.template_id,
                "api_key": found.sent_by if is_key_name(found.sent_by) else None,
                "audience": _audience(found),
                "corrected_by": details.corrected_by,
                "timing": _timing(found),
                "content": found.content,
                "platforms": _platforms(details),
                "left_out": details.left_out,
                "releases": [
                    {
                        "release_at": each.release_at,
                        "platforms": each.platforms,
                        "planned": each.is_planned,
                        "recipient_count": each.recipients,
                    }
                    for each in details.releases
                ],
                "reasons": [
                    {"platform": each.platform, "code": each.code, "count": each.recipients}
                    for each in details.reasons
                    if each.platform
                ],
                "limited_by": details.limited_by,
                "rate_per_minute": details.rate_per_minute,
                "name": found.name,
                "labels": found.labels or [],
                "received_count": found.received_count,
                "clicked_count": found.clicked_count,
                "dismissed_count": found.dismissed_count,
                "actions_clicked": details.actions_clicked,
                "variants": [_variant(each) for each in details.variants],
                "test": ab_test(found),
            }
        ).data
    )


def _variant(result: VariantResult) -> dict[str, Any]:
    names = ("recipient", "delivered", "bounced", "received", "clicked", "dismissed")
    counts = {"recipient_count": result.recipients}
    counts |= {f"{name}_count": getattr(result, name) for name in names[1:]}
    between = result.interval("clicked")
    return {"name": result.name, "weight": result.weight, "clicked_between": between, **counts}


def _timing(notification: Notification) -> dict[str, Any]:
    timing = notification.timed
    return {
        **{name: getattr(notification, name) for name in _MOMENTS},
        "local_at": timing.local_at if timing else None,
        "quiet_hours": timing.quiet.stored() if timing and timing.quiet else None,
        "zones_too_late": timing.zones_too_late if timing else 0,
    }


_MOMENTS: Final = ("scheduled_at", "started_at", "deadline_at", "expires_at", "finished_at")


def _audience(notification: Notification) -> dict[str, Any]:
    return {
        "kind": notification.audience_kind,
        "segment_id": notification.segment_id,
        "category": notification.category or None,
        "rule": notification.own_rule,
        "replaces": notification.replaces,
        "subscription_id": notification.only_subscription_id,
    }


def _platforms(details: Details) -> dict[str, dict[str, Any]]:
    """The counts of all target platforms. They are zero before the notification starts."""
    names = ("recipient", "delivered", "bounced", *APART)
    nothing = {f"{name}_count": 0 for name in names} | {"planned": False}
    counted = {
        each.platform: {
            "recipient_count": each.recipients,
            "delivered_count": each.delivered,
            "bounced_count": each.bounced,
            **{f"{code}_count": count for code, count in each.apart.items()},
            "planned": not each.is_planning,
        }
        for each in details.platforms
    }
    return {name: counted.get(name, nothing) for name in details.notification.target_platforms}
