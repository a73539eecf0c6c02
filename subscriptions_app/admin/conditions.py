"""The choices of the rule builder: the channel's attributes, platforms and tags."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from pushsvc.common.platforms import PLATFORM_VALUES
from subscriptions_app.audiences.sizes import attribute_names
from subscriptions_app.tags.selectors import tag_names

MOST_TAGS: Final = 200


def builder_context(channel_id: UUID) -> Mapping[str, Any]:
    """The context of console/segments/conditions.html. Users can type a tag or an attribute that is
    not offered. If there are more than MOST_TAGS, the page requests tags by prefix."""
    names = [{"name": each.name, "kinds": list(each.kinds)} for each in attribute_names(channel_id)]
    tags = tag_names(channel_id, limit=MOST_TAGS + 1)
    return {
        "known": {"attributes": names, "platforms": PLATFORM_VALUES},
        "tags": tags[:MOST_TAGS],
        "has_more_tags": len(tags) > MOST_TAGS,
    }
