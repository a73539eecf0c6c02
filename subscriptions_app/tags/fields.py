"""Fields of requests with tags."""

from typing import Any

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from typing_extensions import override

from pushsvc.common.http.fields import ListOf, Text, refuse, text_or_refuse
from pushsvc.common.ids import TAG_PATTERN, is_tag
from subscriptions_app.models import MAX_TAG
from subscriptions_app.tags.services import MAX_TAGS


@extend_schema_field({"type": "string", "pattern": f"^{TAG_PATTERN}$"})
class TagName(Text):
    """A tag of a device."""

    @override
    def to_internal_value(self, data: object) -> str:
        text = text_or_refuse(data)
        if not is_tag(text):
            refuse(
                "not_a_tag",
                gettext("Must be 1 to %(most)s of: A-Z a-z 0-9 _ . : -") % {"most": MAX_TAG},
            )
        return text


class Tags(ListOf):
    """Tags. A repeated tag counts once."""

    def __init__(self, **kw: Any) -> None:
        tag = TagName(min_length=1)
        super().__init__(tag, min_length=0, max_length=MAX_TAGS, required=False, **kw)

    @override
    def to_internal_value(self, data: object) -> list[Any]:
        return list(dict.fromkeys(super().to_internal_value(data)))
