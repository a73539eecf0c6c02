"""Declares the fields of a notification's content: type, limits, label and description of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, TypeAlias

from pushsvc.common.links import CLICKS, LinkKind

MAX_TITLE: Final = 100
MAX_BODY: Final = 255
MAX_NAME: Final = 255  # of sounds, categories, threads and the like
MAX_ACTIONS: Final = 3
MAX_ACTION_TITLE: Final = 50
MAX_TRANSLATIONS: Final = 30
MAX_VARS: Final = 20
MAX_VARIANTS: Final = 10
MAX_WEIGHT: Final = 100
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
    VARIANTS = auto()


# The URLs that a link may hold. Only these types and SHOWN_TEXT may contain placeholders.
LINKS: Final[Mapping[Type, LinkKind]] = {
    Type.LINK: LinkKind.WEB,
    Type.SITE_LINK: LinkKind.SITE,
    Type.APP_LINK: LinkKind.APP,
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field.

    `label` names it in the console, `help` describes it in the API's document. `most` and `least`
    limit the characters of a text, or a number. `choices`: the labels of the allowed values.
    `nullable`: null removes the common value on a platform. `sent_as`: the push service's name of
    the field. The audit log shows a field with `is_audited`, which must hold nothing about a
    person.
    """

    type: Type
    label: str
    help: str
    most: int | None = None
    least: int = 0
    choices: Mapping[str, str] = field(default_factory=dict)
    required: bool = False
    nullable: bool = False
    sent_as: str = ""
    is_audited: bool = True


Table: TypeAlias = Mapping[str, Field]


def shown(label: str, help: str, most: int, least: int = 0, **more: Any) -> Field:
    """A text that people see."""
    return Field(Type.SHOWN_TEXT, label, help, most, least, **more)


def flag(label: str, help: str, sent_as: str = "") -> Field:
    return Field(Type.FLAG, label, help, sent_as=sent_as)


def choice(label: str, help: str, choices: Mapping[str, str], sent_as: str = "") -> Field:
    return Field(Type.CHOICE, label, help, choices=choices, sent_as=sent_as)


def _name(label: str, help: str, sent_as: str = "") -> Field:
    return Field(Type.NAME, label, help, MAX_NAME, 1, sent_as=sent_as)


def _count(help: str, sent_as: str = "") -> Field:
    return Field(Type.NUMBER, "Number on the app's icon", help, _MAX_COUNT, sent_as=sent_as)


def _link(label: str, help: str, type: Type = Type.LINK, *, nullable: bool = False) -> Field:
    return Field(type, label, help, least=1, nullable=nullable)


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
_TAG: Final = _name(
    "Replaces others with this tag",
    "Replaces a notification with the same tag. Without it, the notification's id.",
    "tag",
)
_NO_BODY: Final = "Replaces the main text; null: none, if there is a title."
_SITE_URL: Final = "Replaces the url; null: none. May be a path of the site, such as /orders/1."
_APP_URL: Final = (
    "Replaces the url; null: none. May have an app's own scheme, such as myshop://orders/1."
)
# What replaces common fields on each platform.
_ON_PLATFORM: Final[Table] = {
    "title": shown("Title", "Replaces the title; null: none.", MAX_TITLE, nullable=True),
    "body": shown("Text", _NO_BODY, MAX_BODY, 1, nullable=True),
    "image": _link("Large image", "Replaces the image; null: none.", nullable=True),
}
# The options of the standard's showNotification(), and the app's badge.
WEB: Final[Table] = {
    **_ON_PLATFORM,
    "url": _link("Opens", _SITE_URL, Type.SITE_LINK, nullable=True),
    "badge": Field(
        Type.URL, "Small icon", "URL of a small monochrome image.", least=1, sent_as="badge"
    ),
    "require_interaction": flag(
        "Stay until the user acts", "Shown until the user acts.", "requireInteraction"
    ),
    "silent": flag("No sound and no vibration", "No sound and no vibration.", "silent"),
    "renotify": flag(
        "Alert again when it replaces another",
        "Alerts again when it replaces one with the same tag.",
        "renotify",
    ),
    "tag": _TAG,
    "lang": Field(Type.LANGUAGE, "Language", "Language of the texts.", least=1, sent_as="lang"),
    "app_badge": _count("On the web app's icon; 0 removes it."),
    "click": choice(
        "A click",
        "What a click on a link of the site does. Without it, the channel's setting.",
        CLICKS,
    ),
    "dir": choice("Direction of writing", "Direction of the texts.", DIRECTIONS, "dir"),
}
# As FCM passes it on.
ANDROID: Final[Table] = {
    **_ON_PLATFORM,
    "url": _link("Opens", _APP_URL, Type.APP_LINK, nullable=True),
    "channel_id": _name("Notification channel", "The app's notification channel.", "channel_id"),
    "sound": _name("Sound", "File in the app, or `default`.", "sound"),
    "color": Field(
        Type.COLOR, "Color of the small icon", "Color of the small icon.", least=1, sent_as="color"
    ),
    "small_icon": _name("Small icon", "Drawable of the app.", "icon"),
    "click_action": _name(
        "Screen that a tap opens", "Intent filter of the activity to open.", "click_action"
    ),
    "tag": _TAG,
    "count": _count("Shown on the app's icon.", "notification_count"),
    "visibility": choice("On the lock screen", "On the lock screen.", VISIBILITIES, "visibility"),
    "notification_priority": Field(
        Type.PRIORITY,
        "Prominence on Android 7",
        "How prominently Android 7 shows it. From Android 8 on, its channel decides.",
        choices=PRIORITIES,
        sent_as="notification_priority",
    ),
    "ticker": _name(
        "Text for accessibility services", "Read out by accessibility services.", "ticker"
    ),
    "direct_boot_ok": flag(
        "Deliver before the phone is unlocked",
        "Can reach the app after a restart, before the phone is unlocked.",
    ),
    "analytics_label": Field(
        Type.ANALYTICS_LABEL,
        "Label in Firebase's reports",
        "Groups messages in Firebase's delivery reports.",
        least=1,
    ),
    "data_only": flag(
        "Leave the display to the app",
        "Everything goes into `data`, and the app shows the notification itself.",
    ),
}
# As Apple's payload keys.
IOS: Final[Table] = {
    **_ON_PLATFORM,
    "url": _link("Opens", _APP_URL, Type.APP_LINK, nullable=True),
    "subtitle": shown("Subtitle", "Below the title.", MAX_TITLE),
    "sound": Field(
        Type.SOUND,
        "Sound",
        "File in the app, or one with a volume. Without it, `default`; null: none.",
        nullable=True,
    ),
    "badge": _count("On the icon; 0 removes it.", "badge"),
    "category": _name(
        "Category of its buttons", "The app's category, whose buttons iOS shows.", "category"
    ),
    "thread_id": _name("Group", "Notifications of a thread are grouped.", "thread-id"),
    "interruption_level": choice(
        "How much it may interrupt",
        "How much it can disturb the user.",
        INTERRUPTION_LEVELS,
        "interruption-level",
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
    "content_available": flag(
        "Wake the app in the background", "Also wakes the app in the background."
    ),
}
SOUND: Final[Table] = {
    "name": Field(Type.NAME, "Sound", "File in the app, or `default`.", MAX_NAME, 1, required=True),
    "critical": flag("Critical", "Plays even when the phone is muted; needs an entitlement."),
    "volume": Field(Type.SHARE, "Volume", "From 0, silent, to 1."),
}
ACTION: Final[Table] = {
    "id": Field(
        Type.ID, "Name in reports", "Its name in reports of clicks.", least=1, required=True
    ),
    "title": shown("Label", "Text of the button.", MAX_ACTION_TITLE, 1, required=True),
    "url": _link("Opens", "Opened on click, instead of the notification's."),
    "web_url": _link("Opens on Web", "Replaces the url in browsers.", Type.SITE_LINK),
    "android_url": _link("Opens on Android", "Replaces the url on Android.", Type.APP_LINK),
    "ios_url": _link("Opens on iOS", "Replaces the url on iOS.", Type.APP_LINK),
    "icon": Field(Type.URL, "Icon", "URL of its icon.", least=1),
}
# The texts for one language. Titles of buttons are added by their ids.
TRANSLATION: Final[Table] = {
    "title": shown("Title", "Replaces the title.", MAX_TITLE),
    "body": shown("Text", "Replaces the main text.", MAX_BODY, 1),
    "url": _link("Opens", "Replaces the url."),
    "image": _link("Large image", "Replaces the image."),
}
# One of several contents, of which each device gets one. It replaces what it has of the send's.
VARIANT: Final[Table] = {
    "name": Field(Type.ID, "Name", "Its name in reports.", least=1, required=True),
    "weight": Field(
        Type.NUMBER, "Weight", "Its share in relation to the other variants.", MAX_WEIGHT, 1
    ),
    **TRANSLATION,
    "icon": _link("Icon", "Replaces the icon."),
    "web": Field(Type.WEB, "Only on Web", "Replaces these fields of `web`."),
    "android": Field(Type.ANDROID, "Only on Android", "Replaces these fields of `android`."),
    "ios": Field(Type.IOS, "Only on iOS", "Replaces these fields of `ios`."),
    "translations": Field(
        Type.TRANSLATIONS, "Languages", "Replaces these texts of `translations`."
    ),
}
# The fields of the objects in a send's content, by the type of the field that holds them.
OBJECTS: Final[Mapping[Type, Table]] = {
    Type.ACTIONS: ACTION,
    Type.WEB: WEB,
    Type.ANDROID: ANDROID,
    Type.IOS: IOS,
    Type.TRANSLATIONS: TRANSLATION,
    Type.VARIANTS: VARIANT,
    Type.SOUND: SOUND,
}


def sent_names(table: Table) -> dict[str, str]:
    """The push service's names of the fields, by our names."""
    return {name: each.sent_as for name, each in table.items() if each.sent_as}
