"""The content of a send as JSON: its buttons, translations and platforms' own fields."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail
from typing_extensions import override

from notifications_app.sends.personal_schema import AppLink, Link, SiteLink
from pushsvc.common.http.fields import (
    Choice,
    Flag,
    HttpUrl,
    Language,
    ListOf,
    MapOf,
    ShownText,
    StrictSerializer,
    Text,
    WholeNumber,
    refuse,
)
from pushsvc.common.languages import NOT_A_LANGUAGE, canonical_language

MAX_TITLE: Final = 100
MAX_BODY: Final = 255
MAX_NAME: Final = 255  # of sounds, categories, threads and the like
MAX_ACTIONS: Final = 3
MAX_ACTION_TITLE: Final = 50
MAX_TRANSLATIONS: Final = 30
DIRECTIONS: Final = ("auto", "ltr", "rtl")
VISIBILITIES: Final = ("private", "public", "secret")
NOTIFICATION_PRIORITIES: Final = ("min", "low", "default", "high", "max")
INTERRUPTION_LEVELS: Final = ("passive", "active", "time-sensitive", "critical")
_MAX_COUNT: Final = 2**31 - 1  # the limit of Google's and Apple's numbers


class _Patterned(Text):
    """Text that matches a pattern, which `words` describe."""

    pattern: re.Pattern[str]
    words: str
    code = "malformed"

    @override
    def to_internal_value(self, data: object) -> str:
        text = super().to_internal_value(data)
        if not self.pattern.fullmatch(text):
            refuse(self.code, self.words)
        return text


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z0-9_-]{0,32}$"})
class Topic(_Patterned):
    """RFC 8030 section 5.4."""

    pattern = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
    words = "Must be 1 to 32 base64url characters."
    code = "not_a_topic"


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,32}$"})
class ActionId(_Patterned):
    pattern = Topic.pattern
    words = "Must be 1 to 32 letters, digits, hyphens and underscores."


@extend_schema_field({"type": "string", "pattern": "^#[0-9A-Fa-f]{6}$"})
class Color(_Patterned):
    pattern = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE | re.ASCII)
    words = "Must be a color such as #ff8800."


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z0-9._~%-]{1,50}$"})
class AnalyticsLabel(_Patterned):
    """https://firebase.google.com/docs/cloud-messaging/understand-delivery#adding-analytics-labels"""

    pattern = re.compile(r"[A-Za-z0-9._~%-]{1,50}", re.ASCII)
    words = "Must be 1 to 50 letters, digits and characters of -_.~%."


@extend_schema_field({"type": "number", "minimum": 0, "maximum": 1})
class Share(serializers.FloatField):
    """A number from 0 to 1."""

    @override
    def to_internal_value(self, data: object) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
            refuse("not_a_number", "Must be a number.")
        if not 0 <= data <= 1:
            refuse("out_of_range", "Must be from 0 to 1.")
        return data


class Action(StrictSerializer):
    """A button."""

    id = ActionId(min_length=1, help_text="Its name in reports of clicks.")
    title = ShownText(min_length=1, max_length=MAX_ACTION_TITLE, help_text="What it says.")
    url = Link(required=False, help_text="Opened on click, instead of the notification's.")
    web_url = SiteLink(required=False, help_text="Replaces the url in browsers.")
    android_url = AppLink(required=False, help_text="Replaces the url on Android.")
    ios_url = AppLink(required=False, help_text="Replaces the url on iOS.")
    icon = HttpUrl(required=False, help_text="URL of its icon.")


def _optional(field: type[Any], **kw: Any) -> Any:
    """An optional field. A missing field is not stored."""
    return field(required=False, **kw)


def _name(help_text: str) -> Any:
    return _optional(Text, min_length=1, max_length=MAX_NAME, help_text=help_text)


def _app_url() -> Any:
    words = "Replaces the url; null: none. May have an app's own scheme, such as myshop://orders/1."
    return _optional(AppLink, allow_null=True, help_text=words)


class PlatformContent(StrictSerializer):
    """What replaces the common content on a platform."""

    title = _optional(
        ShownText,
        max_length=MAX_TITLE,
        allow_null=True,
        help_text="Replaces the title; null: none.",
    )
    body = _optional(
        ShownText,
        min_length=1,
        max_length=MAX_BODY,
        allow_null=True,
        help_text="Replaces the main text; null: none, if there is a title.",
    )
    image = _optional(Link, allow_null=True, help_text="Replaces the image; null: none.")


class WebContent(PlatformContent):
    """For browsers. The options of the standard's showNotification(), and the app's badge."""

    url = _optional(
        SiteLink,
        allow_null=True,
        help_text="Replaces the url; null: none. May be a path of the site, such as /orders/1.",
    )
    badge = _optional(HttpUrl, help_text="URL of a small monochrome image.")
    require_interaction = _optional(Flag, help_text="Shown until the user acts.")
    silent = _optional(Flag, help_text="No sound and no vibration.")
    renotify = _optional(Flag, help_text="Alerts again when it replaces one with the same tag.")
    tag = _name("Replaces a notification with the same tag. Without it, the notification's id.")
    lang = _optional(Language, min_length=1, help_text="Language of the texts.")
    app_badge = _optional(
        WholeNumber, min=0, max=_MAX_COUNT, help_text="On the web app's icon; 0 removes it."
    )
    dir = _optional(Choice, choices=DIRECTIONS, help_text="Direction of the texts.")


# A pattern, because Urgency has values of the same names, which generators for Go define twice.
@extend_schema_field({"type": "string", "pattern": f"^({'|'.join(NOTIFICATION_PRIORITIES)})$"})
class NotificationPriority(Choice):
    """How prominently Android 7 shows the notification."""


class AndroidContent(PlatformContent):
    """For Android, as FCM passes it on."""

    url = _app_url()
    channel_id = _name("The app's notification channel.")
    sound = _name("File in the app, or `default`.")
    color = _optional(Color, min_length=1, help_text="Color of the small icon.")
    small_icon = _name("Drawable of the app.")
    click_action = _name("Intent filter of the activity to open.")
    tag = _name("Replaces a notification with the same tag. Without it, the notification's id.")
    count = _optional(WholeNumber, min=0, max=_MAX_COUNT, help_text="Shown on the app's icon.")
    visibility = _optional(Choice, choices=VISIBILITIES, help_text="On the lock screen.")
    notification_priority = _optional(
        NotificationPriority,
        choices=NOTIFICATION_PRIORITIES,
        help_text="How prominently Android 7 shows it. From Android 8 on, its channel decides.",
    )
    ticker = _name("Read out by accessibility services.")
    direct_boot_ok = _optional(
        Flag, help_text="Can reach the app after a restart, before the phone is unlocked."
    )
    analytics_label = _optional(
        AnalyticsLabel, min_length=1, help_text="Groups messages in Firebase's delivery reports."
    )
    data_only = _optional(
        Flag, help_text="Everything goes into `data`, and the app shows the notification itself."
    )


class SoundFile(StrictSerializer):
    """A sound with its volume."""

    name = Text(min_length=1, max_length=MAX_NAME, help_text="File in the app, or `default`.")
    critical = _optional(Flag, help_text="Heard also if the phone is muted; needs an entitlement.")
    volume = _optional(Share, help_text="From 0, silent, to 1.")


_SOUND_NAME: Final = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
_SOUND_FILE: Final = {
    "title": "SoundFile",
    "type": "object",
    "description": "A sound with its volume.",
    "required": ["name"],
    "properties": {
        "name": {**_SOUND_NAME, "description": "File in the app, or `default`."},
        "critical": {"type": "boolean", "description": "Heard also if the phone is muted."},
        "volume": {"type": "number", "minimum": 0, "maximum": 1, "description": "1 is loudest."},
    },
}


@extend_schema_field({"oneOf": [_SOUND_NAME, _SOUND_FILE]})
class Sound(serializers.Field[Any, Any, Any, Any]):
    """The name of a file, or an object with one."""

    _name = Text(min_length=1, max_length=MAX_NAME)

    @override
    def to_internal_value(self, data: object) -> str | dict[str, Any]:
        if isinstance(data, dict):
            return SoundFile.checked(data)
        name: str = self._name.run_validation(data)
        return name


class IosContent(PlatformContent):
    """For iOS, as Apple's payload keys say."""

    url = _app_url()
    subtitle = _optional(ShownText, max_length=MAX_TITLE, help_text="Below the title.")
    sound = _optional(Sound, help_text="File in the app, or `default`; or one with a volume.")
    badge = _optional(WholeNumber, min=0, max=_MAX_COUNT, help_text="On the icon; 0 removes it.")
    category = _name("The app's category, whose buttons iOS shows.")
    thread_id = _name("Notifications of a thread are grouped.")
    interruption_level = _optional(
        Choice,
        choices=INTERRUPTION_LEVELS,
        help_text="How much it may disturb.",
    )
    relevance_score = _optional(Share, help_text="Sorts the app's notifications in the summary.")
    target_content_id = _name("The window of the app to bring forward.")
    content_available = _optional(Flag, help_text="Wakes the app in the background, too.")


class Actions(ListOf):
    """Buttons with different ids."""

    def __init__(self, **kw: Any) -> None:
        super().__init__(Action(), min_length=0, max_length=MAX_ACTIONS, **kw)

    @override
    def to_internal_value(self, data: object) -> list[Any]:
        actions = super().to_internal_value(data)
        ids = [action["id"] for action in actions]
        twice = ErrorDetail("Another button has this id.", code="given_twice")
        faults: dict[Any, Any] = {
            index: {"id": [twice]} for index, each in enumerate(ids) if each in ids[:index]
        }
        if faults:
            raise serializers.ValidationError(faults)
        return actions


class ActionTitles(MapOf):
    child = ShownText(min_length=1, max_length=MAX_ACTION_TITLE)
    most = MAX_ACTIONS


class Translation(StrictSerializer):
    """The texts for one language. What is missing is as for a more general language."""

    title = _optional(ShownText, max_length=MAX_TITLE, help_text="Replaces the title.")
    body = _optional(
        ShownText, min_length=1, max_length=MAX_BODY, help_text="Replaces the main text."
    )
    url = _optional(Link, help_text="Replaces the url.")
    image = _optional(Link, help_text="Replaces the image.")
    actions = _optional(ActionTitles, help_text="Titles of the buttons, by their ids.")


class Translations(MapOf):
    """Translations by language, of which the tags become canonical."""

    child = Translation()
    most = MAX_TRANSLATIONS

    @override
    def to_internal_value(self, data: object) -> dict[str, Any]:
        translations = super().to_internal_value(data)
        faults: dict[str, list[ErrorDetail]] = {}
        found: dict[str, Any] = {}
        for name, each in translations.items():
            tag = canonical_language(name)
            if tag is None:
                faults[name] = [ErrorDetail(NOT_A_LANGUAGE, code="not_a_language")]
            elif tag in found:
                faults[name] = [ErrorDetail(f"Another name also means {tag}.", code="given_twice")]
            else:
                found[tag] = each
        if faults:
            raise serializers.ValidationError(faults)
        return found


def check_action_titles(content: Mapping[str, Any]) -> None:
    """Raises ValidationError for a translation of a button that does not exist."""
    known = {each["id"] for each in content["actions"]}
    fault = ErrorDetail("There is no such button.", code="unknown_field")
    faults = {
        tag: {"actions": {name: [fault] for name in unknown}}
        for tag, each in content["translations"].items()
        if (unknown := each.get("actions", {}).keys() - known)
    }
    if faults:
        raise serializers.ValidationError({"translations": faults})
