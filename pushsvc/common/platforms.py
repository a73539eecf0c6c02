"""The platforms that a message can be sent to, and the addresses of Android."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Platform(StrEnum):
    WEB = "web"
    ANDROID = "android"
    IOS = "ios"


# Plain texts, for models, serializers and SQL.
PLATFORM_VALUES: Final = [platform.value for platform in Platform]
# With the labels in the migrations.
PLATFORM_CHOICES: Final = [(platform.value, platform.value.capitalize()) for platform in Platform]
# For people. By text, because templates and rows have the text.
PLATFORM_NAMES: Final[Mapping[str, str]] = {
    Platform.WEB: "Web",
    Platform.ANDROID: "Android",
    Platform.IOS: "iOS",
}

# A Firebase installation id (FID): 17 bytes of which the first begins with the bits 0111, as
# base64url without the last half character (firebase-installations, RandomFidGenerator). FCM's
# registration tokens are longer: a FID, a colon and more.
_FID: Final = re.compile(r"[cdef][A-Za-z0-9_-]{21}")


def is_fid(address: str) -> bool:
    """Whether an Android address is a FID. Otherwise it is a registration token."""
    return _FID.fullmatch(address) is not None
