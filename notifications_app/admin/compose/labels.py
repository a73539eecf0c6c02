"""Labels of the forms' fields for buttons, languages and platforms."""

from collections.abc import Mapping
from typing import Final

from pushsvc.common.platforms import PLATFORM_NAMES

_TEXTS: Final = {"title": "Title", "body": "Text", "url": "Opens", "image": "Large image"}
_REPLACES: Final = "Replaces others with this tag"
_LABELS: Final[Mapping[str, Mapping[str, str]]] = {
    "actions": {
        "id": "Id in reports",
        "title": "Label",
        "url": "Opens",
        **{f"{platform}_url": f"Opens on {name}" for platform, name in PLATFORM_NAMES.items()},
        "icon": "Icon",
    },
    "translations": _TEXTS,
    "web": {
        **_TEXTS,
        "badge": "Small icon",
        "require_interaction": "Stay until the user acts",
        "silent": "No sound and no vibration",
        "renotify": "Alert again when it replaces another",
        "tag": _REPLACES,
        "lang": "Language",
        "app_badge": "Number on the app's icon",
        "dir": "Direction of writing",
    },
    "android": {
        **_TEXTS,
        "channel_id": "Notification channel",
        "sound": "Sound",
        "color": "Color of the small icon",
        "small_icon": "Small icon",
        "click_action": "Screen that a tap opens",
        "tag": _REPLACES,
        "count": "Number on the app's icon",
        "visibility": "On the lock screen",
        "notification_priority": "Prominence on Android 7",
        "ticker": "Text for accessibility services",
        "direct_boot_ok": "Deliver before the phone is unlocked",
        "analytics_label": "Label in Firebase's reports",
        "data_only": "Leave the display to the app",
    },
    "ios": {
        **_TEXTS,
        "subtitle": "Subtitle",
        "sound": "Sound",
        "badge": "Number on the app's icon",
        "category": "Category of its buttons",
        "thread_id": "Group",
        "interruption_level": "How much it may interrupt",
        "relevance_score": "Relevance, from 0 to 1",
        "target_content_id": "Window to bring forward",
        "content_available": "Wake the app in the background",
    },
}
# By the field's name and the API's value.
_CHOICES: Final[Mapping[str, Mapping[str, str]]] = {
    "dir": {"auto": "as the text begins", "ltr": "left to right", "rtl": "right to left"},
    "visibility": {
        "private": "shown without its content",
        "public": "shown with its content",
        "secret": "hidden",
    },
    "interruption_level": {
        "passive": "not at all: only listed",
        "active": "as usual",
        "time-sensitive": "also while the user wants to focus",
        "critical": "also if the phone is muted (needs Apple's approval)",
    },
}


def label_of(path: str) -> str:
    """The label of a path in the API's body, such as web.tag or actions.0.title. A path without a
    field is its own label."""
    group, name = path.partition(".")[0], path.rpartition(".")[2]
    return _LABELS.get(group, {}).get(name, path)


def choice_label(name: str, value: str) -> str:
    return _CHOICES.get(name, {}).get(value, value)
