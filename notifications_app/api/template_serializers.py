"""Serializers of templates."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from notifications_app.models import MAX_TEMPLATE_NAME, Template
from notifications_app.sends.schema import TemplateContent
from pushsvc.common.http.fields import StrictSerializer, Text, Timestamp


class TemplateInput(StrictSerializer):
    """A template to make, or what replaces one."""

    name = Text(min_length=1, max_length=MAX_TEMPLATE_NAME, help_text="Unique within the channel.")
    content = TemplateContent(help_text="Any fields of the content of a send.")


@extend_schema_field(TemplateContent)
class StoredContent(serializers.Field[Any, Any, Any, Any]):
    """As it was given, without nulls, and with languages in their canonical form."""

    @override
    def to_representation(self, value: Any) -> Any:
        return value


class TemplateOutput(serializers.Serializer[Template]):
    """A template."""

    template_id = serializers.UUIDField(source="id", help_text="For `template_id` of a send.")
    name = serializers.CharField(help_text="Unique within the channel.")
    content = StoredContent(help_text="As it was given, with languages in their canonical form.")
    created_at = Timestamp(help_text="When the template was created.")
    updated_at = Timestamp(help_text="When its name or content was last replaced.")
