"""Declares the fields of a notification's content: type, limits, label and description of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, TypeAlias

from pushsvc.common.links import LinkKind

MAX_TITLE: Final = 100
MAX_BODY: Final = 255
MAX_NAME: Final = 255  # of sounds, categories, threads and the like
MAX_ACTIONS: Final = 3
MAX_ACTION_TITLE: Final = 50
MAX_TRANSLATIONS: Final = 30
MAX_VARS: Final = 20
MAX_TTL: Final = 28 * 24 * 3600
DEFAULT_TTL: Final = 3 * 24 * 3600
_MAX_COUNT: Final = 2**31 - 1  # the limit of Google's and Apple's numbers


class Type(Enum):
    """The type of a field's value."""

    SHOWN_TEXT = auto()  # people see it; may contain placeholders
    NAME = auto()
    LINK = auto()  # may contain placeholders
    SITE_LINK = auto()  # also a path of the site
    APP_LINK = auto()  # also a URL with an app's own scheme
    URL = auto()
    FLAG = auto()
    CHOICE = auto()
    PRIORITY = auto()
    NUMBER = auto()
    SHARE = auto()  # from 0 to 1
    TOPIC = auto()
    ID = auto()
    COLOR = auto()
    LANGUAGE = auto()
    ANALYTICS_LABEL = auto()
    SOUND = auto()
    TEXTS = auto()  # by name
    VARS = auto()
    ACTIONS = auto()
    WEB = auto()
    ANDROID = auto()
    IOS = auto()
    TRANSLATIONS = auto()


# The URLs that a link may hold. Only these types and SHOWN_TEXT may contain placeholders.
LINKS: Final[Mapping[Type, LinkKind]] = {
    Type.LINK: LinkKind.WEB,
    Type.SITE_LINK: LinkKind.SITE,
    Type.APP_LINK: LinkKind.APP,
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field.

    `label` names it in the console, `help` describes it in the API's document. `least` and `most`
    limit the characters of a text, or a number. `choices`: the labels of the allowed values.
    `nullable`: null removes the common value on a platform. `sent_as`: the push service's name of
    the field. Without `has_column` it is stored in the column `extras`. The audit log shows a field
    with `is_audited`, which must hold nothing about a person.
    """

    type: Type
    label: str
    help: str
    least: int = 0
    most: int | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    required: bool = False
    nullable: bool = False
    sent_as: str = ""
    has_column: bool = False
    is_audited: bool = True


Table: TypeAlias = Mapping[str, Field]

URGENCIES: Final = {
    "very-low": "Very low: only on power and Wi-Fi",
    "low": "Low: only on power or Wi-Fi",
    "normal": "Normal",
    "high": "High: also on low battery",
}
DIRECTIONS: Final = {"auto": "as the text begins", "ltr": "left to right", "rtl": "right to left"}
VISIBILITIES: Final = {
    "private": "shown without its content",
    "public": "shown with its content",
    "secret": "hidden",
}
PRIORITIES: Final = {each: each for each in ("min", "low", "default", "high", "max")}
INTERRUPTION_LEVELS: Final = {
    "passive": "not at all: only listed",
    "active": "as usual",
    "time-sensitive": "even while the user wants to focus",
    "critical": "even when the phone is muted (needs Apple's approval)",
}


def _name(label: str, help: str, sent_as: str = "") -> Field:
    return Field(Type.NAME, label, help, least=1, most=MAX_NAME, sent_as=sent_as)


def _count(help: str, sent_as: str = "") -> Field:
    return Field(Type.NUMBER, "Number on the app's icon", help, most=_MAX_COUNT, sent_as=sent_as)


def _app_url() -> Field:
    help = "Replaces the url; null: none. May have an app's own scheme, such as myshop://orders/1."
    return Field(Type.APP_LINK, "Opens", help, least=1, nullable=True)


_TAG: Final = _name(
    "Replaces others with this tag",
    "Replaces a notification with the same tag. Without it, the notification's id.",
    sent_as="tag",
)
# What replaces common fields on each platform.
_ON_PLATFORM: Final[Table] = {
    "title": Field(
        Type.SHOWN_TEXT, "Title", "Replaces the title; null: none.", most=MAX_TITLE, nullable=True
    ),
    "body": Field(
        Type.SHOWN_TEXT,
        "Text",
        "Replaces the main text; null: none, if there is a title.",
        least=1,
        most=MAX_BODY,
        nullable=True,
    ),
    "image": Field(
        Type.LINK, "Large image", "Replaces the image; null: none.", least=1, nullable=True
    ),
}
# The options of the standard's showNotification(), and the app's badge.
WEB: Final[Table] = {
    **_ON_PLATFORM,
    "url": Field(
        Type.SITE_LINK,
        "Opens",
        "Replaces the url; null: none. May be a path of the site, such as /orders/1.",
        least=1,
        nullable=True,
    ),
    "badge": Field(
        Type.URL, "Small icon", "URL of a small monochrome image.", least=1, sent_as="badge"
    ),
    "require_interaction": Field(
        Type.FLAG,
        "Stay until the user acts",
        "Shown until the user acts.",
        sent_as="requireInteraction",
    ),
    "silent": Field(
        Type.FLAG, "No sound and no vibration", "No sound and no vibration.", sent_as="silent"
    ),
    "renotify": Field(
        Type.FLAG,
        "Alert again when it replaces another",
        "Alerts again when it replaces one with the same tag.",
        sent_as="renotify",
    ),
    "tag": _TAG,
    "lang": Field(Type.LANGUAGE, "Language", "Language of the texts.", least=1, sent_as="lang"),
    "app_badge": _count("On the web app's icon; 0 removes it."),
    "dir": Field(
        Type.CHOICE,
        "Direction of writing",
        "Direction of the texts.",
        choices=DIRECTIONS,
        sent_as="dir",
    ),
}
# As FCM passes it on.
ANDROID: Final[Table] = {
    **_ON_PLATFORM,
    "url": _app_url(),
    "channel_id": _name(
        "Notification channel", "The app's notification channel.", sent_as="channel_id"
    ),
    "sound": _name("Sound", "File in the app, or `default`.", sent_as="sound"),
    "color": Field(
        Type.COLOR, "Color of the small icon", "Color of the small icon.", least=1, sent_as="color"
    ),
    "small_icon": _name("Small icon", "Drawable of the app.", sent_as="icon"),
    "click_action": _name(
        "Screen that a tap opens",
        "Intent filter of the activity to open.",
        sent_as="click_action",
    ),
    "tag": _TAG,
    "count": _count("Shown on the app's icon.", sent_as="notification_count"),
    "visibility": Field(
        Type.CHOICE,
        "On the lock screen",
        "On the lock screen.",
        choices=VISIBILITIES,
        sent_as="visibility",
    ),
    "notification_priority": Field(
        Type.PRIORITY,
        "Prominence on Android 7",
        "How prominently Android 7 shows it. From Android 8 on, its channel decides.",
        choices=PRIORITIES,
        sent_as="notification_priority",
    ),
    "ticker": _name(
        "Text for accessibility services", "Read out by accessibility services.", sent_as="ticker"
    ),
    "direct_boot_ok": Field(
        Type.FLAG,
        "Deliver before the phone is unlocked",
        "Can reach the app after a restart, before the phone is unlocked.",
    ),
    "analytics_label": Field(
        Type.ANALYTICS_LABEL,
        "Label in Firebase's reports",
        "Groups messages in Firebase's delivery reports.",
        least=1,
    ),
    "data_only": Field(
        Type.FLAG,
        "Leave the display to the app",
        "Everything goes into `data`, and the app shows the notification itself.",
    ),
}
# As Apple's payload keys.
IOS: Final[Table] = {
    **_ON_PLATFORM,
    "url": _app_url(),
    "subtitle": Field(Type.SHOWN_TEXT, "Subtitle", "Below the title.", most=MAX_TITLE),
    "sound": Field(Type.SOUND, "Sound", "File in the app, or `default`; or one with a volume."),
    "badge": _count("On the icon; 0 removes it.", sent_as="badge"),
    "category": _name(
        "Category of its buttons", "The app's category, whose buttons iOS shows.", "category"
    ),
    "thread_id": _name("Group", "Notifications of a thread are grouped.", sent_as="thread-id"),
    "interruption_level": Field(
        Type.CHOICE,
        "How much it may interrupt",
        "How much it may disturb.",
        choices=INTERRUPTION_LEVELS,
        sent_as="interruption-level",
    ),
    "relevance_score": Field(
        Type.SHARE,
        "Relevance, from 0 to 1",
        "Sorts the app's notifications in the summary.",
        sent_as="relevance-score",
    ),
    "target_content_id": _name(
        "Window to bring forward", "The window of the app to bring forward.", "target-content-id"
    ),
    "content_available": Field(
        Type.FLAG, "Wake the app in the background", "Also wakes the app in the background."
    ),
}
SOUND: Final[Table] = {
    "name": Field(Type.NAME, "Sound", "File in the app, or `default`.", 1, MAX_NAME, required=True),
    "critical": Field(
        Type.FLAG, "Critical", "Plays even when the phone is muted; needs an entitlement."
    ),
    "volume": Field(Type.SHARE, "Volume", "From 0, silent, to 1."),
}
ACTION: Final[Table] = {
    "id": Field(Type.ID, "Id in reports", "Its name in reports of clicks.", 1, required=True),
    "title": Field(Type.SHOWN_TEXT, "Label", "What it says.", 1, MAX_ACTION_TITLE, required=True),
    "url": Field(Type.LINK, "Opens", "Opened on click, instead of the notification's.", 1),
    "web_url": Field(Type.SITE_LINK, "Opens on Web", "Replaces the url in browsers.", 1),
    "android_url": Field(Type.APP_LINK, "Opens on Android", "Replaces the url on Android.", 1),
    "ios_url": Field(Type.APP_LINK, "Opens on iOS", "Replaces the url on iOS.", 1),
    "icon": Field(Type.URL, "Icon", "URL of its icon.", 1),
}
# The texts for one language. Titles of buttons are added by their ids.
TRANSLATION: Final[Table] = {
    "title": Field(Type.SHOWN_TEXT, "Title", "Replaces the title.", most=MAX_TITLE),
    "body": Field(Type.SHOWN_TEXT, "Text", "Replaces the main text.", least=1, most=MAX_BODY),
    "url": Field(Type.LINK, "Opens", "Replaces the url.", least=1),
    "image": Field(Type.LINK, "Large image", "Replaces the image.", least=1),
}
# The fields of the objects in a send's content, by the type of the field that holds them.
OBJECTS: Final[Mapping[Type, Table]] = {
    Type.ACTIONS: ACTION,
    Type.WEB: WEB,
    Type.ANDROID: ANDROID,
    Type.IOS: IOS,
    Type.TRANSLATIONS: TRANSLATION,
    Type.SOUND: SOUND,
}


def sent_names(table: Table) -> dict[str, str]:
    """The push service's names of the fields, by our names."""
    return {name: each.sent_as for name, each in table.items() if each.sent_as}
