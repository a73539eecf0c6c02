"""The input of a send. The API and the console read it with the same serializer."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework.fields import empty
from typing_extensions import override

from notifications_app.content import CONTENT_FIELDS, Content, SendRequest
from notifications_app.models import Notification, Urgency
from pushsvc.common.http.fields import (
    Choice,
    Flag,
    HttpUrl,
    Id,
    ListOf,
    StrictSerializer,
    StringMap,
    Text,
    Timestamp,
    WholeNumber,
    refuse,
)
from pushsvc.common.platforms import PLATFORM_VALUES, Platform

MAX_TITLE: Final = 100
MAX_BODY: Final = 255
MAX_TTL: Final = 28 * 24 * 3600
DEFAULT_TTL: Final = 3 * 24 * 3600
MAX_PLATFORMS: Final = 20  # given, with duplicates
_TOPIC: Final = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,32}$"})
class Topic(Text):
    """RFC 8030 section 5.4."""

    @override
    def to_internal_value(self, data: object) -> str:
        text = super().to_internal_value(data)
        if not _TOPIC.fullmatch(text):
            refuse("not_a_topic", "Must be 1 to 32 base64url characters.")
        return text


class SendFields(StrictSerializer):
    """Unknown fields are refused, so that a misspelt `scheduled_at` does not send at once."""

    # `default=str` gives "" without showing it in the schema, where it would not be a valid value.
    body = Text(min_length=1, max_length=MAX_BODY, help_text="Main text.")
    title = Text(max_length=MAX_TITLE, default="", help_text="Shown above the main text.")
    url = HttpUrl(min_length=1, default=str, help_text="Destination opened on click.")
    icon = HttpUrl(min_length=1, default=str, help_text="URL of the icon image.")
    image = HttpUrl(min_length=1, default=str, help_text="URL of a large image.")
    scheduled_at = Timestamp(
        default=None, help_text="When omitted or in the past, the notification is sent at once."
    )
    expires_at = Timestamp(
        default=None,
        help_text="Nobody is sent it afterwards, whatever `ttl` says. After `scheduled_at`.",
    )
    segment_id = Id(
        default=None, allow_null=True, help_text="One segment only; null: the whole channel."
    )
    target_platforms = ListOf(
        Choice(PLATFORM_VALUES),
        max_length=MAX_PLATFORMS,
        default=[Platform.WEB.value],
        help_text="Duplicates count once.",
    )
    data = StringMap(  # type: ignore[assignment] # Serializer.data stays: DRF lifts fields out
        default={}, help_text="Passed to the device unchanged."
    )
    ttl = WholeNumber(
        min=0,
        max=MAX_TTL,
        default=DEFAULT_TTL,
        help_text="Seconds for which delivery is tried; 0: deliver at once or drop.",
    )
    urgency = Choice(
        Urgency.values,
        default=Urgency.NORMAL.value,
        help_text="Which devices that save energy are woken (RFC 8030 section 5.3).",
    )
    topic = Topic(
        min_length=1,
        default=str,
        help_text="A newer notification with the same topic replaces the older one on the device.",
    )

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        platforms = dict.fromkeys(map(Platform, attrs["target_platforms"]))
        return {**attrs, "target_platforms": tuple(platforms)}


_NAMES: Final = frozenset(SendFields().fields)
_TIMES: Final = ("scheduled_at", "expires_at")


class SendInput(SendFields):
    """A notification to send."""

    dry_run = Flag(default=False, help_text="Check everything; store and send nothing.")


# A pattern, because generators of clients refuse an enumeration that has null.
_NULLABLE_URGENCY: Final = {
    "type": "string",
    "pattern": f"^({'|'.join(Urgency.values)})$",
    "nullable": True,
}


class EditInput(SendFields):
    """Any fields of a send. A field that is missing stays as it is; null takes its default. `body`
    has none."""

    @override
    def get_fields(self) -> dict[str, Any]:
        """For the API's document. `read_edit` validates the notification as a whole."""
        fields: dict[str, Any] = super().get_fields()
        for name, field in fields.items():
            field.required, field.default, field.allow_null = False, empty, name != "body"
        extend_schema_field(_NULLABLE_URGENCY)(fields["urgency"])
        fields[
            "segment_id"
        ].help_text = (
            "Another segment, if the send is to a segment; null only if it is to the whole channel."
        )
        return fields


def read_send(data: object) -> tuple[SendRequest, bool]:
    """The request, and whether it is a dry run. Raises DRF's ValidationError."""
    given = SendInput.checked(data)
    is_dry_run = given.pop("dry_run")
    return _request(given), is_dry_run


def read_edit(notification: Notification, changes: Mapping[str, Any]) -> SendRequest:
    """What `changes` make of the notification, validated as a whole send. Raises DRF's
    ValidationError."""
    merged = {**_body_of(notification), **changes}
    kept = {name: merged[name] for name in merged if merged[name] is not None or name not in _NAMES}
    times = {name: getattr(notification, name) for name in _TIMES if name not in changes}
    own = times | {"only_subscription_id": notification.only_subscription_id}
    return replace(_request(SendFields.checked(kept)), **own)


def _request(given: dict[str, Any]) -> SendRequest:
    content = Content(**{name: given.pop(name) for name in CONTENT_FIELDS})
    return SendRequest(content=content, **given)


def _body_of(notification: Notification) -> dict[str, Any]:
    """The body of the send that the notification came from, or was edited to, without times."""
    content = {name: getattr(notification.content, name) for name in CONTENT_FIELDS}
    return {
        **{name: value for name, value in content.items() if value not in ("", {})},
        "target_platforms": list(notification.target_platforms),
        "segment_id": str(notification.segment_id) if notification.segment_id else None,
    }
