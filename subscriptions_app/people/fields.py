"""The field for external ids in requests of the owner's backend."""

import re
from typing import Any, Final

from django.utils.translation import gettext
from typing_extensions import override

from pushsvc.common.http.fields import Text, refuse
from subscriptions_app.models import MAX_EXTERNAL_ID

# What a broken client sends instead of an id. All its users would become one person.
RESERVED: Final = frozenset(
    {"null", "undefined", "none", "nan", "0", "-1", "anonymous", "[object object]"}
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class ExternalId(Text):
    """The text as it is sent, because another spelling is another person."""

    def __init__(self, **kw: Any) -> None:
        super().__init__(min_length=1, max_length=MAX_EXTERNAL_ID, **kw)

    @override
    def to_internal_value(self, data: object) -> str:
        text = super().to_internal_value(data)
        if text != text.strip() or _CONTROL.search(text):
            refuse(
                "malformed", gettext("Must have no control character, and no blank at either end.")
            )
        if text.lower() in RESERVED:
            refuse("reserved_value", gettext("This is what a program sends by mistake, not an id."))
        return text
