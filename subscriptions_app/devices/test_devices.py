"""Test devices: named devices on which staff check a notification before they send it.

A device joins with an invitation, a signed text with the channel and the name. So a phone needs no
sign-in: it opens a link, which only allows it to become this test device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from uuid import UUID

import redis
from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel, Membership, Role
from pushsvc.common.errors import Conflict, FieldError, Forbidden, Invalid, NotFound, Unavailable
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.store.redis_client import redis_client
from subscriptions_app.devices.selectors import subscription_active
from subscriptions_app.models import MAX_DEVICE_NAME, Subscription, TestDevice

MOST_DEVICES: Final = 50  # of a channel
INVITED_SECONDS: Final = 15 * 60
_SALT: Final = "subscriptions_app.devices.invitation"


@dataclass(frozen=True, slots=True)
class Listed:
    """`platform` is "" if the device is no longer subscribed."""

    device: TestDevice
    platform: str

    @property
    def platform_name(self) -> str:
        return PLATFORM_NAMES.get(self.platform, "")


@dataclass(frozen=True, slots=True)
class Invitation:
    channel_id: UUID
    name: str
    user_id: int
    digest: str  # of the invitation's text


class NameTaken(Conflict):
    """Another test device of the channel has the name."""

    def __init__(self, name: str) -> None:
        super().__init__(gettext("Another test device is called “%(name)s”.") % {"name": name})


def device_of(subscription: Subscription) -> TestDevice | None:
    """The test device that the subscription is."""
    own = TestDevice.objects.filter(channel_id=subscription.channel_id)
    return own.filter(subscription_id=subscription.pk).first()


def device_names(channel_id: UUID) -> dict[UUID, str]:
    """The names of the channel's test devices, by the ids of their subscriptions."""
    devices = TestDevice.objects.filter(channel_id=channel_id)
    return dict(devices.values_list("subscription_id", "name"))


def devices_of(channel_id: UUID, *, writer: User | None = None) -> Sequence[Listed]:
    """The channel's test devices, or only those of a writer, by name."""
    own = TestDevice.objects.filter(channel_id=channel_id)
    if writer is not None:
        own = own.filter(writer=writer)
    devices = list(own.order_by("name"))
    ids = [each.subscription_id for each in devices]
    active = Subscription.objects.active().filter(channel_id=channel_id, id__in=ids)
    platforms = dict(active.values_list("id", "platform"))
    return [Listed(each, platforms.get(each.subscription_id, "")) for each in devices]


def device_add(*, channel: Channel, name: str, subscription_id: UUID, user: User) -> TestDevice:
    """Makes the subscription a test device. If it already is one, changes its name.

    Safe to repeat. Raises NotFound if the channel has no such active subscription, NameTaken if
    another device has the name, Conflict if the channel has MOST_DEVICES, and Invalid for a name
    that is empty or too long.
    """
    name = _checked_name(name)
    subscription_active(channel_id=channel.pk, subscription_id=subscription_id)
    with transaction.atomic():
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        known = list(TestDevice.objects.filter(channel=channel))
        same = next((each for each in known if each.subscription_id == subscription_id), None)
        if any(each.name == name and each is not same for each in known):
            raise NameTaken(name)
        if same is not None:
            return _renamed(same, name)
        if len(known) >= MOST_DEVICES:
            raise Conflict(
                gettext("The channel has %(most)s test devices. Remove one first.")
                % {"most": MOST_DEVICES}
            )
        device = TestDevice.objects.create(
            channel=channel, name=name, subscription_id=subscription_id, added_by=user
        )
        audit.record(
            device, audit.Action.CREATE, after=audit.fields_of(device), note=f"Invited by {user}."
        )
    return device


def device_join(
    *, invitation: Invitation, channel: Channel, subscription_id: UUID, user: User
) -> TestDevice:
    """As `device_add`, with an invitation, which is for one device.

    Also raises Forbidden if another device joined with it or the device was removed, and
    Unavailable while Redis is away.
    """
    with transaction.atomic():
        device = device_add(
            channel=channel, name=invitation.name, subscription_id=subscription_id, user=user
        )
        _use_up(invitation, device)
    return device


def device_give(device: TestDevice, writer: User | None) -> None:
    """Makes it the device of this writer, who may then test on it, or of none. Safe to repeat.
    Raises Invalid unless the user is a writer of the channel's account, and NotFound if the device
    was removed meanwhile."""
    if writer is not None and writer not in writers_of(device.channel):
        detail = gettext("Only a member of the account with the role writer has own test devices.")
        raise Invalid([FieldError("writer", Invalid.code, detail)])
    with transaction.atomic():
        device = _locked(device)
        before = audit.fields_of(device)
        device.writer = writer
        device.save(update_fields=["writer"])
        audit.record(device, audit.Action.UPDATE, before, audit.fields_of(device))


def writers_of(channel: Channel) -> QuerySet[User]:
    """The active members of the channel's account with the role writer, by name."""
    members = Membership.objects.filter(account=channel.account_id, role=Role.WRITER)
    return User.objects.filter(is_active=True, pk__in=members.values("user")).order_by("username")


def device_remove(device: TestDevice) -> None:
    """Removes the test device. The subscription stays. Raises NotFound if it was removed."""
    with transaction.atomic():
        device = _locked(device)
        audit.record(device, audit.Action.DELETE, audit.fields_of(device))
        device.delete()


def invite(*, channel: Channel, name: str, user: User) -> str:
    """Creates an invitation. Raises Invalid for a name that is empty or too long."""
    return signing.dumps([str(channel.pk), _checked_name(name), user.pk], salt=_SALT)


def invitation_of(text: str, *, channel_id: UUID) -> Invitation:
    """Reads an invitation. Raises Forbidden if it is forged, too old, or of another channel."""
    try:
        channel, name, user_id = signing.loads(text, salt=_SALT, max_age=INVITED_SECONDS)
    except signing.BadSignature as error:
        raise Forbidden("This invitation is not valid any more. Make another one.") from error
    if UUID(channel) != channel_id:
        raise Forbidden("This invitation is for another channel.")
    return Invitation(channel_id, name, user_id, sha256(text.encode()).hexdigest())


def _use_up(invitation: Invitation, device: TestDevice) -> None:
    """Marks the invitation as used by this device. Raises Forbidden if another device used it, and
    Unavailable without Redis, because then it is not known whether it was used."""
    key, own = f"pushsvc:invitation:{invitation.digest}", str(device.pk)
    try:
        is_first = redis_client().set(key, own, nx=True, ex=INVITED_SECONDS)
        is_own = is_first or redis_client().get(key) == own
    except redis.RedisError as error:
        raise Unavailable("Invitations cannot be used now. Try again later.") from error
    if not is_own:
        raise Forbidden("This invitation was used already. Make another one.")


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > MAX_DEVICE_NAME or not name.isprintable():
        detail = gettext("A name has 1 to %(most)s characters.") % {"most": MAX_DEVICE_NAME}
        raise Invalid([FieldError("name", Invalid.code, detail)])
    return name


def _locked(device: TestDevice) -> TestDevice:
    rows = TestDevice.objects.select_related("channel").select_for_update(of=("self",))
    found = rows.filter(pk=device.pk).first()
    if found is None:
        raise NotFound
    return found


def _renamed(device: TestDevice, name: str) -> TestDevice:
    device = _locked(device)
    before = audit.fields_of(device)
    device.name = name
    device.save(update_fields=["name"])
    audit.record(device, audit.Action.UPDATE, before, audit.fields_of(device))
    return device
