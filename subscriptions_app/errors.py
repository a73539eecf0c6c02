"""Errors of subscriptions, endpoints, categories and segments."""

from typing import ClassVar
from uuid import UUID

from django.utils.translation import gettext

from pushsvc.common.errors import Conflict, FieldError, Forbidden, Invalid, Unavailable
from pushsvc.common.platforms import Platform
from pushsvc.common.texts import later
from subscriptions_app.models import MOST_DEVICES


class PlatformNotEnabled(Invalid):
    """The platform is not enabled for the channel."""

    code = "platform_not_enabled"
    title = "Platform not enabled"

    def __init__(self, attr: str, platform: Platform) -> None:
        super().__init__(
            [
                FieldError(
                    attr,
                    self.code,
                    gettext("The platform %(platform)s is not enabled for this channel.")
                    % {"platform": platform},
                )
            ]
        )


class EndpointRefused(Invalid):
    """The installation does not send to this endpoint."""

    code = "endpoint_not_allowed"
    title = "Endpoint not allowed"

    def __init__(self, reason: str) -> None:
        super().__init__([FieldError("endpoint", self.code, reason)])


class VapidKeyUnknown(Invalid):
    """The named key is not a VAPID key of the channel, neither the current nor a retired one."""

    code = "vapid_key_unknown"
    title = "VAPID key unknown"

    def __init__(self) -> None:
        super().__init__(
            [
                FieldError(
                    "vapid_public_key",
                    self.code,
                    gettext("This is not a VAPID key of the channel."),
                )
            ]
        )


class SubscriptionsFull(Unavailable):
    """The channel has its maximum of subscriptions, and all of them are proven."""

    code = "subscriptions_full"
    title = "The channel is full"
    detail = "The channel accepts no new subscriptions now. Its owner was notified."
    retry_after: ClassVar[int] = 3600


class IdentityOff(Invalid):
    """The channel does not link devices to people."""

    code = "identity_off"
    title = "Identity is off"

    def __init__(self) -> None:
        detail = gettext(
            "The channel's setting `identity` is `off`, so no device belongs to a person."
        )
        super().__init__([FieldError("external_id", self.code, detail)])


class IdentityRefused(Forbidden):
    """Nothing proves that the device belongs to the person that it names."""

    code = "identity_refused"
    title = "Identity refused"
    detail = "There is no token."


class DeviceUnproven(Forbidden):
    """Nothing proves that the request comes from the device that it names."""

    code = "device_unproven"
    title = "Device not proven"
    detail = "The channel has no device with this address and this `auth`."


class TooManyDevices(Conflict):
    """A person may have MOST_DEVICES active devices."""

    code = "too_many_devices"
    title = "Too many devices"
    detail = later(
        "The person has %(devices)s active devices. One more cannot be linked.",
        devices=MOST_DEVICES,
    )


class SegmentNameTaken(Conflict):
    """The names of a channel's segments are unique."""

    code = "segment_name_taken"
    title = "Segment name taken"
    detail = later("Another segment of the channel has this name.")


class TooManySegments(Conflict):
    """A channel has a limit of segments."""

    code = "too_many_segments"
    title = "Too many segments"


class NotificationNotFound(Invalid):
    """A rule names a notification that the channel does not have."""

    code = "notification_not_found"
    title = "Notification not found"

    def __init__(self, attr: str, notification_id: UUID) -> None:
        detail = gettext("The channel has no notification %(id)s.") % {"id": notification_id}
        super().__init__([FieldError(attr, self.code, detail)])


class CategoryUnknown(Invalid):
    """The channel has no such category, or it is archived."""

    code = "category_unknown"
    title = "Category unknown"

    def __init__(self, attr: str) -> None:
        super().__init__(
            [FieldError(attr, self.code, gettext("The channel has no such category."))]
        )


class CategoryKeyTaken(Conflict):
    """The keys of a channel's categories are unique."""

    code = "category_key_taken"
    title = "Category key taken"
    detail = later("Another category of the channel has this key.")
