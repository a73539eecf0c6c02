"""Errors of subscriptions, endpoints and segments."""

from typing import ClassVar

from pushsvc.common.errors import Conflict, Fault, Invalid, Unavailable
from pushsvc.common.platforms import Platform


class PlatformNotEnabled(Invalid):
    """The platform is not enabled for the channel."""

    code = "platform_not_enabled"
    title = "Platform not enabled"

    def __init__(self, attr: str, platform: Platform) -> None:
        super().__init__(
            [Fault(attr, self.code, f"The platform {platform} is not enabled for this channel.")]
        )


class EndpointRefused(Invalid):
    """The installation does not send to this endpoint."""

    code = "endpoint_not_allowed"
    title = "Endpoint not allowed"

    def __init__(self, reason: str) -> None:
        super().__init__([Fault("endpoint", self.code, reason)])


class VapidKeyUnknown(Invalid):
    """The named key is not a VAPID key of the channel, neither the current nor a retired one."""

    code = "vapid_key_unknown"
    title = "VAPID key unknown"

    def __init__(self) -> None:
        super().__init__(
            [Fault("vapid_public_key", self.code, "This is not a VAPID key of the channel.")]
        )


class SubscriptionsFull(Unavailable):
    """The channel has its maximum of subscriptions, and a push service took a message for each."""

    code = "subscriptions_full"
    title = "The channel is full"
    detail = "The channel accepts no new subscriptions now. Its owner has been told."
    retry_after: ClassVar[int] = 3600


class SegmentNameTaken(Conflict):
    """The names of a channel's segments are unique."""

    code = "segment_name_taken"
    title = "Segment name taken"
    detail = "Another segment of the channel has this name."
