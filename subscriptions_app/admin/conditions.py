"""What the builder of rules offers: the channel's attributes, platforms and tags."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from pushsvc.common.platforms import PLATFORM_VALUES
from subscriptions_app.sizes import attribute_names
from subscriptions_app.tagged import tag_names

_MOST_TAGS: Final = 200


def builder_context(channel_id: UUID) -> Mapping[str, Any]:
    """For console/segments/conditions.html. A tag or an attribute that is not offered can be
    typed."""
    names = [{"name": each.name, "kinds": list(each.kinds)} for each in attribute_names(channel_id)]
    return {
        "known": {"attributes": names, "platforms": PLATFORM_VALUES},
        "tags": tag_names(channel_id, limit=_MOST_TAGS),
    }
