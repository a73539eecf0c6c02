"""The input of a send and of an edit for the API's document alone. `send_schema` validates it."""

from typing import Any

from rest_framework.fields import empty
from typing_extensions import override

from notifications_app.content.values import AUDIENCE_FIELDS, AudienceKind
from notifications_app.sends.schema import SendBody, SendFields


class SendInput(SendBody):
    """A notification to send. Null removes a field of the template."""

    never_null = frozenset({"body"})

    @override
    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        fields["body"].required = False
        fields["body"].help_text = "Main text. Required, unless a template gives it."
        return fields


class EditInput(SendFields):
    """Any fields of a send. A field that is missing stays as it is; null takes its default. `body`
    has none."""

    never_null = frozenset({"body"})

    @override
    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for field in fields.values():
            field.required, field.default = False, empty
        for name, kind in AUDIENCE_FIELDS.items():
            fields[name].help_text = f"Another {kind} only if the send is to a {kind}."
            if kind == AudienceKind.TARGETS:
                fields[name].help_text = "Other targets only if the send is to targets."
        fields["replaces"].help_text = "Another notification only if the send corrects one."
        return fields
