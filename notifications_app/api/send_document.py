"""The input of a send and of an edit for the API's document alone. `send_schema` validates it."""

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework.fields import empty
from typing_extensions import override

from notifications_app.content import AUDIENCE_FIELDS, ON_MISSING, REMOVABLE_FIELDS
from notifications_app.content_schema import MAX_BODY, AndroidContent, IosContent, WebContent
from notifications_app.models import Urgency
from notifications_app.send_schema import SendBody, SendFields
from pushsvc.common.http.fields import ShownText


def _nullable(choices: Iterable[str]) -> dict[str, Any]:
    """A pattern, because generators of clients refuse an enumeration with null."""
    return {"type": "string", "pattern": f"^({'|'.join(choices)})$", "nullable": True}


class WebOrNone(WebContent):
    """For browsers alone; null: nothing."""


class AndroidOrNone(AndroidContent):
    """For Android alone; null: nothing."""


class IosOrNone(IosContent):
    """For iOS alone; null: nothing."""


class _Changes(SendFields):
    """Fields of which some may be null, which then take their default or that of the template."""

    body = ShownText(min_length=1, max_length=MAX_BODY, required=False, help_text="Main text.")
    # Separate classes, because elsewhere they may not be null.
    web = WebOrNone(default=dict, help_text="For browsers alone.")
    android = AndroidOrNone(default=dict, help_text="For Android alone.")
    ios = IosOrNone(default=dict, help_text="For iOS alone.")

    @override
    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        for name in REMOVABLE_FIELDS:
            fields[name].allow_null = True
        return fields


class SendInput(_Changes, SendBody):
    """A notification to send. Null removes a field of the template."""

    body = ShownText(
        min_length=1,
        max_length=MAX_BODY,
        required=False,
        help_text="Main text. Required, unless a template gives it.",
    )


class EditInput(_Changes):
    """Any fields of a send. A field that is missing stays as it is; null takes its default. `body`
    has none."""

    @override
    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for name, field in fields.items():
            field.required, field.default, field.allow_null = False, empty, name != "body"
        extend_schema_field(_nullable(Urgency.values))(fields["urgency"])
        extend_schema_field(_nullable(ON_MISSING))(fields["on_missing"])
        for name, kind in AUDIENCE_FIELDS.items():
            fields[name].help_text = f"Another {kind} only if the send is to a {kind}."
        return fields
