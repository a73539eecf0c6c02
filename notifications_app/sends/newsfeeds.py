"""A channel's newsfeeds: creates and changes them, and shows what they would send.

`newsfeeds/` checks them, and `sends/publishing.py` sends what they find.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.entries import EXAMPLE, filled
from notifications_app.content.placeholders import NotATemplate
from notifications_app.content.values import Content, SendRequest
from notifications_app.errors import TooManyNewsfeeds
from notifications_app.models import Newsfeed
from notifications_app.newsfeeds.comparing import Values
from notifications_app.sends.publishing import request_of
from notifications_app.sends.stored_sends import check_name, check_stored, loaded, stored, unshown
from pushsvc.common.endpoints import EndpointNotAllowed, canonical_endpoint, check_endpoint
from pushsvc.common.errors import FieldError, Invalid, NotFound, Outdated
from pushsvc.common.store import sql

MOST_NEWSFEEDS: Final = 20  # of each channel
_LEAST_APART: Final = timedelta(minutes=1)  # checks that the owner asks for
_LABEL: Final = Newsfeed._meta.label_lower
_OWN: Final = ("name", "is_enabled", "every_minutes", "daily_limit", "disabled_code")


@dataclass(frozen=True)
class Preview:
    """What would be sent of the newest entry. `entry` and `content` are None before the first
    check that found one. `content` is also None if the stored text is no longer a valid template,
    which an update of this service can cause."""

    newsfeed: Newsfeed
    entry: Values | None
    content: Content | None


def newsfeed_create(*, channel: Channel, url: str, send: SendRequest, **given: Any) -> Newsfeed:
    """Creates a newsfeed, which is checked at once. That check sends nothing. Raises what
    `send_check` raises for the send, Invalid, and TooManyNewsfeeds."""
    with transaction.atomic():
        # Locks the channel, so that no other newsfeed is added before the transaction ends.
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        if _of(channel.pk).count() >= MOST_NEWSFEEDS:
            detail = gettext("The channel has %(most)s newsfeeds. Delete one first.") % {
                "most": MOST_NEWSFEEDS
            }
            raise TooManyNewsfeeds(detail)
        newsfeed = Newsfeed(channel=channel, url=_checked(url))
        _fill(newsfeed, send=send, **given)
        newsfeed.save(force_insert=True)
        newsfeed.refresh_from_db()
        audit.record(newsfeed, audit.Action.CREATE, after=_audited(newsfeed))
    return newsfeed


@transaction.atomic
def newsfeed_update(
    *,
    channel_id: UUID,
    newsfeed_id: UUID,
    url: str,
    send: SendRequest,
    seen: str | None = None,
    **given: Any,
) -> Newsfeed:
    """Replaces the newsfeed. With another address, or if it was disabled, it is read as if for the
    first time, so that the next check sends nothing. What was found and not sent yet is sent with
    the new content, unless it is read anew or off. Safe to repeat. Raises NotFound, what
    `newsfeed_create` raises, and Outdated if `seen`, a version, is not the newsfeed's."""
    newsfeed = _locked(channel_id, newsfeed_id)
    _check_seen(newsfeed, seen)
    before, was = _audited(newsfeed), newsfeed.send | {"address": newsfeed.url}
    # The stored address is canonical, so the owner's spelling of it is not another one.
    is_new, was_enabled = canonical_endpoint(url) != newsfeed.url, newsfeed.is_enabled
    if is_new:
        newsfeed.url = _checked(url)
    _fill(newsfeed, send=send, **given)
    if is_new or (newsfeed.is_enabled and not was_enabled):
        _forget(newsfeed)
    if not newsfeed.is_enabled:
        newsfeed.found = None
    newsfeed.disabled_code = ""
    _save_changed(newsfeed)
    note = unshown(_LABEL, was, newsfeed.send | {"address": newsfeed.url})
    audit.record(newsfeed, audit.Action.UPDATE, before, _audited(newsfeed), note=note)
    return newsfeed


@transaction.atomic
def newsfeed_switch(
    *, channel_id: UUID, newsfeed_id: UUID, on: bool, seen: str | None = None
) -> Newsfeed:
    """Enables or disables the newsfeed, with what follows from that as in `newsfeed_update`. Safe
    to repeat. Raises NotFound, and to enable it also Outdated if `seen`, a version, is not the
    newsfeed's, and what `send_check` raises."""
    newsfeed = _locked(channel_id, newsfeed_id)
    if on == newsfeed.is_enabled:
        return newsfeed
    before = _audited(newsfeed)
    if on:
        _check_seen(newsfeed, seen)
        _check_send(newsfeed.channel, loaded(newsfeed.send))
        _forget(newsfeed)
    newsfeed.is_enabled, newsfeed.found, newsfeed.disabled_code = on, None, ""
    newsfeed.changed_by = audit.actor_name()
    _save_changed(newsfeed)
    audit.record(newsfeed, audit.Action.UPDATE, before, _audited(newsfeed))
    return newsfeed


@transaction.atomic
def newsfeed_delete(*, channel_id: UUID, newsfeed_id: UUID) -> None:
    """Deletes the newsfeed. Its notifications stay. Raises NotFound."""
    newsfeed = _locked(channel_id, newsfeed_id)
    audit.record(newsfeed, audit.Action.DELETE, _audited(newsfeed))
    newsfeed.delete()


@transaction.atomic
def newsfeed_check(*, channel_id: UUID, newsfeed_id: UUID) -> Newsfeed:
    """Makes it due now, unless it was checked in the last minute or is disabled. Raises
    NotFound."""
    newsfeed = _locked(channel_id, newsfeed_id)
    now = sql.now()
    soonest = newsfeed.checked_at + _LEAST_APART if newsfeed.checked_at else now
    newsfeed.next_at = min(newsfeed.next_at, max(now, soonest))
    newsfeed.save(update_fields=["next_at"])
    return newsfeed


def newsfeed_get(*, channel_id: UUID, newsfeed_id: UUID) -> Newsfeed:
    """Raises NotFound, also for a newsfeed of another channel."""
    return _one(_of(channel_id).filter(pk=newsfeed_id))


def newsfeed_page(*, channel_id: UUID, limit: int, offset: int) -> list[Newsfeed]:
    """A page of the newsfeeds, newest first. Empty if the offset is past the end."""
    return list(_of(channel_id).order_by("-created_at", "-id")[offset : offset + limit])


def newsfeed_preview(*, channel_id: UUID, newsfeed_id: UUID) -> Preview:
    """What the newsfeed would send of the newest entry of its last check. Raises NotFound."""
    newsfeed = newsfeed_get(channel_id=channel_id, newsfeed_id=newsfeed_id)
    entry: Values | None = newsfeed.latest
    content = None
    if entry:
        with suppress(NotATemplate):
            content = request_of(newsfeed, entry).content
    return Preview(newsfeed, entry, content)


def _of(channel_id: UUID) -> QuerySet[Newsfeed]:
    return Newsfeed.objects.filter(channel_id=channel_id).select_related("channel")


def _one(newsfeeds: QuerySet[Newsfeed]) -> Newsfeed:
    found = newsfeeds.first()
    if found is None:
        raise NotFound(gettext("There is no such newsfeed."))
    return found


def _locked(channel_id: UUID, newsfeed_id: UUID) -> Newsfeed:
    own = _of(channel_id).filter(pk=newsfeed_id)
    return _one(own.select_for_update(no_key=True, of=("self",)))


def _fill(
    newsfeed: Newsfeed,
    *,
    name: str,
    send: SendRequest,
    every_minutes: int,
    daily_limit: int,
    enabled: bool = True,
) -> None:
    """The ranges of the numbers are checked by the form and the serializer."""
    check_name(name)
    newsfeed.name, newsfeed.is_enabled = name, enabled
    newsfeed.every_minutes, newsfeed.daily_limit = every_minutes, daily_limit
    _check_send(newsfeed.channel, send)
    newsfeed.send_json, newsfeed.segment_id = stored(send), send.segment_id
    newsfeed.changed_by = audit.actor_name()


def _check_send(channel: Channel, send: SendRequest) -> None:
    try:
        content = filled(send.content, EXAMPLE)
    except NotATemplate as error:
        raise Invalid([FieldError(error.attr, "not_a_template", str(error))]) from error
    check_stored(channel, replace(send, content=content))


def _check_seen(newsfeed: Newsfeed, seen: str | None) -> None:
    if seen is not None and seen != newsfeed.version:
        raise Outdated


def _forget(newsfeed: Newsfeed) -> None:
    """The next check is the first one."""
    newsfeed.known = newsfeed.latest = newsfeed.checked_at = newsfeed.failing_since = None
    newsfeed.found = None
    newsfeed.failures = newsfeed.entry_count = 0
    newsfeed.etag = newsfeed.modified = newsfeed.last_error = ""
    newsfeed.next_at = sql.now()


def _save_changed(newsfeed: Newsfeed) -> None:
    """Of a check that is running, the result is dropped."""
    newsfeed.lease_number, newsfeed.lease_until = newsfeed.lease_number + 1, None
    newsfeed.updated_at = Now()
    newsfeed.save()
    newsfeed.refresh_from_db()


def _checked(url: str) -> str:
    """The address in its canonical form. Raises Invalid."""
    try:
        endpoint = check_endpoint(
            url, trusted_origins=settings.NEWSFEED_TRUSTED_ORIGINS, allowed_hosts=()
        )
    except EndpointNotAllowed as error:
        detail = error.reason.replace("The endpoint", "The address")
        raise Invalid([FieldError("url", "endpoint_not_allowed", detail)]) from error
    return endpoint.url


def _audited(newsfeed: Newsfeed) -> dict[str, Any]:
    """The values that the audit log may show."""
    values = {**newsfeed.send, **{name: getattr(newsfeed, name) for name in _OWN}}
    return {name: value for name, value in values.items() if name in audit.SHOWN[_LABEL]}
