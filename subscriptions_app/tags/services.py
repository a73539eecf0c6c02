"""Changes the tags of devices.

A change locks the rows of its subscriptions before their tags, so changes of one device run one
after the other, and the limit of its tags is exact.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext

from channels_app import audit
from channels_app.feeds import EventKind, feed_call
from channels_app.models import Channel
from pushsvc.common.errors import FieldError, Invalid, NotFound
from pushsvc.common.store import sql
from subscriptions_app.models import Person, Subscription, TagRemoval
from subscriptions_app.tags.selectors import tag_exists

MAX_TAGS: Final = 100  # of a device
MAX_MEMBERS: Final = 1_000  # ids in one request
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TagChange:
    """A device's change of its own tags. With `replaces`, it has exactly the tags in `added`
    afterwards."""

    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    replaces: bool = False


def device_tags_change(subscription_id: UUID, change: TagChange) -> None:
    """Changes the tags of one device, in one round trip. Safe to repeat.

    Call it in the transaction that has written, and so locked, the subscription. Raises Invalid if
    the device would have more than MAX_TAGS.
    """
    parameters = {
        "subscription": subscription_id,
        "added": list(change.added),
        "removed": list(change.removed),
        "replaces": change.replaces,
    }
    ((count,),) = sql.rows_of_last(_CHANGE, parameters)
    if count > MAX_TAGS:
        detail = gettext("The device would have %(count)s tags. It may have at most %(most)s.") % {
            "count": count,
            "most": MAX_TAGS,
        }
        raise Invalid([FieldError("add_tags", "too_many", detail)])


def device_tags_inherit(subscription_id: UUID, previous_id: UUID) -> None:
    """Copies the tags of a device's previous subscription to the one that it keeps, if that has no
    tags."""
    sql.execute(_INHERIT, {"subscription": subscription_id, "previous": previous_id})


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """`devices`: how many of the named devices have the tag now, or no longer have it. `full`: how
    many did not get it because they have MAX_TAGS."""

    devices: int
    full: int
    missing_external_ids: Sequence[str]
    missing_subscription_ids: Sequence[UUID]


@transaction.atomic
def tag_members_change(
    *,
    channel: Channel,
    tag: str,
    external_ids: Sequence[str],
    subscription_ids: Sequence[UUID],
    remove: bool,
) -> MembersChanged:
    """Adds the tag to these devices and to the active devices of these people, or removes it.

    Also removes it from the people's expired devices. Safe to repeat.
    """
    people = dict(
        Person.objects.filter(channel=channel, external_id__in=external_ids).values_list(
            "external_id", "id"
        )
    )
    own = Subscription.objects.filter(channel=channel)
    named = set(own.filter(id__in=subscription_ids).values_list("id", flat=True))
    of_people = own.filter(person__in=people.values())
    if not remove:
        of_people = of_people.active()
    devices = _locked(named.union(of_people.values_list("id", flat=True)))
    named.intersection_update(devices)
    statement, done = (_REMOVE, "removed from") if remove else (_ADD, "added to")
    parameters = {"devices": devices, "tag": tag, "most": MAX_TAGS}
    changed = int(sql.rows_of_last(statement, parameters)[0][0])
    _note(channel, f"The tag {tag} was {done} {changed} devices.")
    return MembersChanged(
        devices=changed,
        full=len(devices) - changed,
        missing_external_ids=_without(external_ids, people),
        missing_subscription_ids=_without(subscription_ids, named),
    )


@transaction.atomic
def tag_delete(*, channel: Channel, tag: str) -> None:
    """Deletes the tag: housekeeping will remove it from every device. Safe to repeat until then.

    Raises NotFound if no device of the channel has the tag.
    """
    if not tag_exists(channel.pk, tag):
        raise NotFound
    # Locked, because housekeeping may be ending an earlier deletion, which misses new devices.
    TagRemoval.objects.select_for_update().get_or_create(channel_id=channel.pk, tag=tag)
    _note(channel, f"The tag {tag} was deleted.")


def deleted_tags_purge(limit: int) -> int:
    """Removes the tag that was deleted first from at most `limit` devices. Returns how many.

    Skips devices that are registering; the next call removes it from them.
    """
    with transaction.atomic():
        removals = TagRemoval.objects.select_for_update(skip_locked=True).order_by("asked_at")
        removal = removals.first()
        if removal is None:
            return 0
        parameters = {"channel": removal.channel_id, "tag": removal.tag, "limit": limit}
        purged = sql.execute(_PURGE, parameters)
        if not tag_exists(removal.channel_id, removal.tag):
            removal.delete()
    return purged


def _locked(devices: Collection[UUID]) -> list[UUID]:
    """Locks the devices that still exist, so that no other transaction changes their tags."""
    rows = Subscription.objects.filter(id__in=devices).locked_by_id()
    return list(rows.values_list("id", flat=True))


def _note(channel: Channel, note: str) -> None:
    audit.record(channel, audit.Action.UPDATE, note=note)


def _without(given: Sequence[T], known: Iterable[T]) -> list[T]:
    found = set(known)
    return [each for each in dict.fromkeys(given) if each not in found]


# Raw, because the ORM has no INSERT … SELECT. A tag that stays is not written again.
_COLUMN: Final = "tag"
_FEED: Final = feed_call(
    EventKind.TAGGED, channel="channel_id", subject="subscription_id", code=_COLUMN
)
_CHANGE = f"""
DELETE FROM subscriptions_app_tag
WHERE subscription_id = %(subscription)s
  AND (tag = ANY (%(removed)s) OR %(replaces)s AND NOT tag = ANY (%(added)s));
INSERT INTO subscriptions_app_tag (channel_id, platform, tag, subscription_id)
SELECT channel_id, platform, unnest(%(added)s::text[]), id
FROM subscriptions_app_subscription WHERE id = %(subscription)s
ON CONFLICT DO NOTHING RETURNING {_FEED};
SELECT count(*) FROM subscriptions_app_tag WHERE subscription_id = %(subscription)s
"""  # noqa: S608 - text of our own

_INHERIT = """
INSERT INTO subscriptions_app_tag (channel_id, platform, tag, subscription_id)
SELECT channel_id, platform, tag, %(subscription)s
FROM subscriptions_app_tag AS tag WHERE subscription_id = %(previous)s
  AND NOT EXISTS (SELECT FROM subscriptions_app_tag WHERE subscription_id = %(subscription)s)
ON CONFLICT DO NOTHING
"""

_ADD: Final = f"""
INSERT INTO subscriptions_app_tag (channel_id, platform, tag, subscription_id)
SELECT channel_id, platform, %(tag)s, id FROM subscriptions_app_subscription AS subscription
WHERE id = ANY (%(devices)s::uuid[])
  AND (SELECT count(*) FROM subscriptions_app_tag AS own
       WHERE own.subscription_id = subscription.id) < %(most)s
ORDER BY id
ON CONFLICT DO NOTHING RETURNING {_FEED};
SELECT count(*) FROM subscriptions_app_tag
WHERE subscription_id = ANY (%(devices)s::uuid[]) AND tag = %(tag)s
"""  # noqa: S608 - text of our own

_REMOVE: Final = """
DELETE FROM subscriptions_app_tag
WHERE subscription_id = ANY (%(devices)s::uuid[]) AND tag = %(tag)s;
SELECT cardinality(%(devices)s::uuid[])
"""

# With a platform, so that PostgreSQL reads the tag's range of the primary key. Locked rows are
# skipped, so that this never waits and cannot deadlock.
_PURGE = """
WITH old AS MATERIALIZED (
  SELECT channel_id, platform, tag, subscription_id FROM subscriptions_app_tag
  WHERE channel_id = %(channel)s AND platform IN ('web', 'android', 'ios') AND tag = %(tag)s
  LIMIT %(limit)s
  FOR UPDATE SKIP LOCKED
)
DELETE FROM subscriptions_app_tag AS purged USING old
WHERE purged.channel_id = old.channel_id AND purged.platform = old.platform
  AND purged.tag = old.tag AND purged.subscription_id = old.subscription_id
"""
