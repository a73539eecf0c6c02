"""What a subscription, its endpoint or a segment can be refused for."""

from typing import ClassVar

from pushsvc.common.errors import Conflict, Fault, Invalid, Unavailable
from pushsvc.common.platforms import Platform


class PlatformNotEnabled(Invalid):
    """The channel does not serve the platform, or nothing can be sent to it yet."""

    code = "platform_not_enabled"
    title = "Platform not enabled"

    def __init__(self, attr: str, platform: Platform) -> None:
        super().__init__(
            [Fault(attr, self.code, f"The platform {platform} is not enabled for this channel.")]
        )


class EndpointRefused(Invalid):
    """This endpoint is not one that the installation sends to."""

    code = "endpoint_not_allowed"
    title = "Endpoint not allowed"

    def __init__(self, reason: str) -> None:
        super().__init__([Fault("endpoint", self.code, reason)])


class VapidKeyUnknown(Invalid):
    """The named key is none of the channel's, current or retired."""

    code = "vapid_key_unknown"
    title = "VAPID key unknown"

    def __init__(self) -> None:
        super().__init__(
            [Fault("vapid_public_key", self.code, "This is not a VAPID key of the channel.")]
        )


class SubscriptionsFull(Unavailable):
    """The channel holds as many subscriptions as it may, and each of them took a message."""

    code = "subscriptions_full"
    title = "The channel is full"
    detail = "The channel takes no new subscriptions now; its owner has been told."
    retry_after: ClassVar[int] = 3600


class SegmentNameTaken(Conflict):
    """Names are how people tell a channel's segments apart."""

    code = "segment_name_taken"
    title = "Segment name taken"
    detail = "Another segment of the channel has this name."
