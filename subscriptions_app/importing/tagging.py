"""Reads and writes the tags of the subscriptions of an import."""

import json
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pushsvc.common.store import sql
from subscriptions_app.importing.merging import Merged
from subscriptions_app.models import Tag


def tags_of(ids: Sequence[UUID]) -> dict[UUID, set[str]]:
    tags: dict[UUID, set[str]] = {}
    for id_, tag in Tag.objects.filter(subscription__in=ids).values_list("subscription_id", "tag"):
        tags.setdefault(id_, set()).add(tag)
    return tags


def tags_write(channel_id: UUID, changed: Sequence[Merged]) -> None:
    tagged = [each for each in changed if each.tags is not None]
    if not tagged:
        return
    given = [
        {"platform": each.row.address.platform, "id": each.id.hex, "tags": each.tags}
        for each in tagged
    ]
    parameters = {
        "channel": channel_id,
        "replaced": [each.id for each in tagged if each.known],
        "given": json.dumps(given),
    }
    if parameters["replaced"]:
        sql.execute(_REPLACE_TAGS, parameters)
    sql.execute(_ADD_TAGS, parameters)


_GIVEN_TAGS: Final = """
jsonb_to_recordset(%(given)s::jsonb) AS given (platform text, id uuid, tags jsonb),
jsonb_array_elements_text(given.tags) AS named (tag)
"""
_REPLACE_TAGS: Final = f"""
DELETE FROM subscriptions_app_tag AS old
WHERE subscription_id = ANY (%(replaced)s::uuid[]) AND NOT EXISTS (
  SELECT FROM {_GIVEN_TAGS} WHERE given.id = old.subscription_id AND named.tag = old.tag)
"""  # noqa: S608 - names of our own
_ADD_TAGS: Final = f"""
INSERT INTO subscriptions_app_tag (channel_id, platform, tag, subscription_id)
SELECT %(channel)s::uuid, platform, tag, id FROM {_GIVEN_TAGS}
ON CONFLICT DO NOTHING
"""  # noqa: S608 - names of our own
