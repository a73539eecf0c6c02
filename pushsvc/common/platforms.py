"""The platforms that a message can be sent to."""

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
