"""Changes of a channel's categories."""

from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from pushsvc.common.errors import FieldError, Invalid, NotFound
from subscriptions_app.categories.consent import categories_of
from subscriptions_app.errors import CategoryKeyTaken
from subscriptions_app.models import Category

MAX_CATEGORIES: Final = 30
MAX_ARCHIVED: Final = 200
MAX_STORED: Final = MAX_CATEGORIES + MAX_ARCHIVED


@transaction.atomic
def category_create(
    *,
    channel: Channel,
    key: str,
    name: str,
    description: str,
    default: bool,
    position: int | None = None,
) -> Category:
    """Creates a category, by default after the others. Restores an archived category with this key,
    together with its choices. Raises CategoryKeyTaken, and Invalid if the channel has too many."""
    Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
    live = categories_of(channel.pk)
    if any(each.key == key for each in live):
        raise CategoryKeyTaken
    if len(live) >= MAX_CATEGORIES:
        detail = gettext("A channel has at most %(most)s categories.") % {"most": MAX_CATEGORIES}
        raise Invalid([FieldError("key", "too_many", detail)])
    archived = Category.objects.filter(channel=channel, archived_at__isnull=False)
    if archived.exclude(key=key).count() >= MAX_ARCHIVED:
        detail = gettext(
            "%(most)s categories are archived. Create one of these again, by its key."
        ) % {"most": MAX_ARCHIVED}
        raise Invalid([FieldError("key", "too_many", detail)])
    if position is None:
        position = max((each.position for each in live), default=-1) + 1
    category, _ = Category.objects.update_or_create(
        channel=channel,
        key=key,
        defaults={
            "name": name,
            "description": description,
            "chosen_by_default": default,
            "position": position,
            "archived_at": None,
        },
    )
    audit.record(category, audit.Action.CREATE, after=audit.fields_of(category))
    return category


def category_update(
    *,
    channel_id: UUID,
    key: str,
    name: str,
    description: str,
    default: bool,
    position: int | None = None,
) -> Category:
    """Changes all fields except the key. Without a `position` it stays where it is. A new default
    counts at once, also for sends that are being planned. Safe to repeat. Raises NotFound."""
    values = {"name": name, "description": description, "chosen_by_default": default}
    return _change(channel_id, key, values | ({} if position is None else {"position": position}))


def category_archive(*, channel_id: UUID, key: str) -> None:
    """Archives the category: no further send can name it, and no preferences show it. Accepted
    sends with the category still leave out devices that refuse it. Raises NotFound."""
    _change(channel_id, key, {"archived_at": Now()})


def category_locked(channel_id: UUID, key: str) -> Category:
    """Locks a category that is not archived, and returns it. Raises NotFound."""
    own = Category.objects.filter(channel_id=channel_id, key=key, archived_at=None)
    category = own.select_for_update(no_key=True).first()
    if category is None:
        raise NotFound(gettext("The channel has no such category."))
    return category


@transaction.atomic
def _change(channel_id: UUID, key: str, values: dict[str, Any]) -> Category:
    category = category_locked(channel_id, key)
    before = audit.fields_of(category)
    Category.objects.filter(pk=category.pk).update(**values)
    category.refresh_from_db()
    audit.record(category, audit.Action.UPDATE, before, audit.fields_of(category))
    return category
