"""The API's input fields for the content that `content/` declares."""

import math
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Final

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail
from rest_framework.fields import empty
from typing_extensions import override

from notifications_app.content.fields import (
    ACTION,
    ANDROID,
    IOS,
    MAX_ACTION_TITLE,
    MAX_ACTIONS,
    MAX_NAME,
    MAX_TRANSLATIONS,
    MAX_VARIANTS,
    PRIORITIES,
    SOUND,
    TRANSLATION,
    VARIANT,
    WEB,
    Field,
    Table,
    Type,
)
from notifications_app.sends.personal_schema import AppLink, Link, SiteLink, Vars
from pushsvc.common.http.fields import (
    Choice,
    Flag,
    HttpUrl,
    Language,
    ListOf,
    MapOf,
    ShownText,
    StrictSerializer,
    StringMap,
    Text,
    WholeNumber,
    refuse,
)
from pushsvc.common.languages import NOT_A_LANGUAGE, canonical_language
from pushsvc.common.texts import later


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
    words = later("Must be 1 to 32 base64url characters.")
    code = "not_a_topic"


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,32}$"})
class ActionId(_Patterned):
    pattern = Topic.pattern
    words = later("Must be 1 to 32 letters, digits, hyphens and underscores.")


@extend_schema_field({"type": "string", "pattern": "^#[0-9A-Fa-f]{6}$"})
class Color(_Patterned):
    pattern = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE | re.ASCII)
    words = later("Must be a color such as #ff8800.")


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z0-9._~%-]{1,50}$"})
class AnalyticsLabel(_Patterned):
    """https://firebase.google.com/docs/cloud-messaging/understand-delivery#adding-analytics-labels"""

    pattern = re.compile(r"[A-Za-z0-9._~%-]{1,50}", re.ASCII)
    words = later("Must be 1 to 50 letters, digits and characters of -_.~%.")


@extend_schema_field({"type": "number", "minimum": 0, "maximum": 1})
class Share(serializers.FloatField):
    """A number from 0 to 1."""

    @override
    def to_internal_value(self, data: object) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
            refuse("not_a_number", gettext("Must be a number."))
        if not 0 <= data <= 1:
            refuse("out_of_range", gettext("Must be from 0 to 1."))
        return data


# A pattern, because Urgency has values of the same names, which generators for Go define twice.
@extend_schema_field({"type": "string", "pattern": f"^({'|'.join(PRIORITIES)})$"})
class NotificationPriority(Choice):
    """How prominently Android 7 shows the notification."""


class DeclaredObject(StrictSerializer):
    """An object with the fields of `table`. A missing field is not stored."""

    table: ClassVar[Table]
    defaults: ClassVar[Mapping[str, Any]] = {}

    @override
    def get_fields(self) -> dict[str, Any]:
        own = {name: _input(each, self._default(name)) for name, each in self.table.items()}
        return own | super().get_fields()

    def _default(self, name: str) -> Any:
        """A type for an empty value, so that each object has its own and "" is not documented."""
        value = self.defaults.get(name, empty)
        return type(value) if value in ("", {}, []) else value


class Action(DeclaredObject):
    """A button."""

    table = ACTION


class WebContent(DeclaredObject):
    """For browsers. The options of the standard's showNotification(), and the app's badge."""

    table = WEB


class AndroidContent(DeclaredObject):
    """For Android, as FCM passes it on."""

    table = ANDROID


class IosContent(DeclaredObject):
    """For iOS, as Apple's payload keys say."""

    table = IOS


class SoundFile(DeclaredObject):
    """A sound with its volume."""

    table = SOUND


_SOUND_NAME: Final = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
_SOUND_FILE: Final = {
    "title": "SoundFile",
    "type": "object",
    "description": "A sound with its volume.",
    "required": ["name"],
    "properties": {
        "name": {**_SOUND_NAME, "description": SOUND["name"].help},
        "critical": {"type": "boolean", "description": SOUND["critical"].help},
        "volume": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": SOUND["volume"].help,
        },
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


def refuse_twice(given: Sequence[Mapping[str, Any]], name: str, words: str) -> None:
    """Raises ValidationError for an object that has the `name` of an earlier one."""
    found = [each[name] for each in given]
    twice = ErrorDetail(words, code="given_twice")
    errors: dict[Any, Any] = {
        index: {name: [twice]} for index, each in enumerate(found) if each in found[:index]
    }
    if errors:
        raise serializers.ValidationError(errors)


class Actions(ListOf):
    """Buttons with different ids."""

    def __init__(self, **kw: Any) -> None:
        super().__init__(Action(), min_length=0, max_length=MAX_ACTIONS, **kw)

    @override
    def to_internal_value(self, data: object) -> list[Any]:
        actions = super().to_internal_value(data)
        refuse_twice(actions, "id", gettext("Another button has this id."))
        return actions


class ActionTitles(MapOf):
    child = ShownText(min_length=1, max_length=MAX_ACTION_TITLE)
    most = MAX_ACTIONS


class Translation(DeclaredObject):
    """The texts for one language. What is missing is as for a more general language."""

    table = TRANSLATION

    actions = ActionTitles(required=False, help_text="Titles of the buttons, by their ids.")


class Translations(MapOf):
    """Translations by language, of which the tags become canonical."""

    child = Translation()
    most = MAX_TRANSLATIONS

    @override
    def to_internal_value(self, data: object) -> dict[str, Any]:
        translations = super().to_internal_value(data)
        errors: dict[str, list[ErrorDetail]] = {}
        found: dict[str, Any] = {}
        for name, each in translations.items():
            tag = canonical_language(name)
            if tag is None:
                errors[name] = [ErrorDetail(gettext(NOT_A_LANGUAGE), code="not_a_language")]
            elif tag in found:
                errors[name] = [
                    ErrorDetail(
                        gettext("Another name also means %(tag)s.") % {"tag": tag},
                        code="given_twice",
                    )
                ]
            else:
                found[tag] = each
        if errors:
            raise serializers.ValidationError(errors)
        return found


class Variant(DeclaredObject):
    """One of several contents. What is missing is as in the send."""

    table = VARIANT
    defaults = {"weight": 1}


class Variants(ListOf):
    """None, or at least two with different names."""

    def __init__(self, **kw: Any) -> None:
        super().__init__(Variant(), min_length=0, max_length=MAX_VARIANTS, **kw)

    @override
    def to_internal_value(self, data: object) -> list[Any]:
        variants = super().to_internal_value(data)
        if len(variants) == 1:
            refuse("out_of_range", gettext("Must be none, or at least two."))
        refuse_twice(variants, "name", gettext("Another variant has this name."))
        return variants


_INPUTS: Final[Mapping[Type, type[Any]]] = {
    Type.SHOWN_TEXT: ShownText,
    Type.NAME: Text,
    Type.LINK: Link,
    Type.SITE_LINK: SiteLink,
    Type.APP_LINK: AppLink,
    Type.URL: HttpUrl,
    Type.FLAG: Flag,
    Type.CHOICE: Choice,
    Type.PRIORITY: NotificationPriority,
    Type.NUMBER: WholeNumber,
    Type.SHARE: Share,
    Type.TOPIC: Topic,
    Type.ID: ActionId,
    Type.COLOR: Color,
    Type.LANGUAGE: Language,
    Type.ANALYTICS_LABEL: AnalyticsLabel,
    Type.SOUND: Sound,
    Type.TEXTS: StringMap,
    Type.VARS: Vars,
    Type.ACTIONS: Actions,
    Type.WEB: WebContent,
    Type.ANDROID: AndroidContent,
    Type.IOS: IosContent,
    Type.TRANSLATIONS: Translations,
    Type.VARIANTS: Variants,
}


def _input(each: Field, default: Any) -> Any:
    """The input of a declared field."""
    kind = _INPUTS[each.type]
    options = {"required": each.required, "default": default, "help_text": each.help}
    if each.nullable:
        options["allow_null"] = True
    if issubclass(kind, WholeNumber):
        options |= {"min": each.least, "max": each.most}
    elif issubclass(kind, Choice):
        options["choices"] = each.choices
    elif issubclass(kind, Text):
        options["min_length"] = each.least
        if each.most is not None:
            options["max_length"] = each.most
    return kind(**options)


def check_action_titles(content: Mapping[str, Any]) -> None:
    """Raises ValidationError for a translation of a button that does not exist."""
    known = {each["id"] for each in content["actions"]}
    errors: dict[str, Any] = _unknown_titles(content, known)
    of_variants = {
        index: found
        for index, variant in enumerate(content["variants"])
        if (found := _unknown_titles(variant, known))
    }
    if of_variants:
        errors["variants"] = of_variants
    if errors:
        raise serializers.ValidationError(errors)


def _unknown_titles(content: Mapping[str, Any], known: Set[str]) -> dict[str, Any]:
    error = ErrorDetail(gettext("There is no such button."), code="unknown_field")
    errors = {
        tag: {"actions": {name: [error] for name in unknown}}
        for tag, each in content.get("translations", {}).items()
        if (unknown := each.get("actions", {}).keys() - known)
    }
    return {"translations": errors} if errors else {}
