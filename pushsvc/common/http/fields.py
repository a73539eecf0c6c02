"""Fields that accept JSON values without coercion or trimming, with few and stable error codes.

Lengths are in Unicode code points. Null in an optional field of an object is the same as no field,
unless `allow_null` gives it a meaning.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, datetime, time
from functools import cache, cached_property
from itertools import islice
from typing import Any, Final, NoReturn, Self, TypeVar
from uuid import UUID

from django.core import validators
from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty
from typing_extensions import override

from pushsvc.common.blank_text import is_blank
from pushsvc.common.errors import MAX_ERRORS, MAX_UNKNOWN, within
from pushsvc.common.field_names import meant_name, no_such_field
from pushsvc.common.http.inputs import Inputs
from pushsvc.common.http.strict_json import is_storable
from pushsvc.common.ids import parse_uuid
from pushsvc.common.languages import NOT_A_LANGUAGE, canonical_language
from pushsvc.common.links import LinkKind, is_link
from pushsvc.common.texts import later
from pushsvc.common.timestamps import format_timestamp, parse_timestamp

MAX_URL_LENGTH = 2000
MOST_COMPARED = 50  # names of an object that may have any; those beyond are ignored
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CLOCK_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)
MAX_TEXTS = 600  # names in an object of texts; a message of 4 KiB cannot contain more


def refuse(code: str, detail: str) -> NoReturn:
    """Raises a validation error with this code."""
    raise serializers.ValidationError(detail, code=code)


@contextmanager
def errors_within(name: str) -> Iterator[None]:
    """Puts the name before the paths of errors of the input."""
    try:
        with within(name):
            yield
    except serializers.ValidationError as error:
        raise serializers.ValidationError({name: error.detail}) from error


def text_or_refuse(data: object) -> str:
    if not isinstance(data, str):
        refuse("not_a_string", gettext("Must be a string."))
    return data


def check_storable(text: str) -> None:
    if not is_storable(text):
        refuse("malformed", gettext("Must not contain NUL or half of a surrogate pair."))


class TooLong(validators.MaxLengthValidator):
    code = "too_long"
    message = later("Must be at most %(limit_value)d characters long.")


class TooShort(validators.MinLengthValidator):
    code = "too_short"
    message = later("Must be at least %(limit_value)d characters long.")


class OverMaximum(validators.MaxValueValidator):
    code = "out_of_range"
    message = later("Must be at most %(limit_value)s.")


class UnderMinimum(validators.MinValueValidator):
    code = "out_of_range"
    message = later("Must be at least %(limit_value)s.")


class Text(serializers.CharField):
    """Text as sent. An empty text is `blank` if there is a minimum length."""

    def __init__(self, *, min_length: int = 0, max_length: int | None = None, **kw: Any) -> None:
        super().__init__(allow_blank=min_length == 0, trim_whitespace=False, **kw)
        limits: list[Callable[[str], None]] = []
        if max_length is not None:
            limits.append(TooLong(max_length))
        if min_length > 1:
            limits.append(TooShort(min_length))
        # Instead of DRF's own, of which one checks each character separately.
        self.validators = [check_storable, *limits]

    @override
    def to_internal_value(self, data: object) -> str:
        return text_or_refuse(data)


class ShownText(Text):
    """Text for people. A text that shows nothing is `blank`, unless it is empty and may be."""

    @override
    def to_internal_value(self, data: object) -> str:
        text = super().to_internal_value(data)
        if text and is_blank(text):
            refuse("blank", gettext("Must have a character that people can see."))
        return text


@extend_schema_field({"type": "string", "format": "uri", "maxLength": MAX_URL_LENGTH})
class HttpUrl(Text):
    """An absolute http or https address with a host; in subclasses also others."""

    kind = LinkKind.WEB

    def __init__(self, *, min_length: int = 1, max_length: int = MAX_URL_LENGTH, **kw: Any) -> None:
        super().__init__(min_length=min_length, max_length=max_length, **kw)

    @override
    def to_internal_value(self, data: object) -> str:
        url = text_or_refuse(data)
        if not is_link(url, self.kind):
            refuse("not_a_url", gettext(self.kind.value))
        return url


@extend_schema_field({"type": "string", "minLength": 2, "maxLength": 100})
class Language(Text):
    """BCP 47, or the name of a locale such as `pt_BR`. It is stored in its canonical form."""

    @override
    def to_internal_value(self, data: object) -> str:
        language = canonical_language(super().to_internal_value(data))
        if language is None:
            refuse("not_a_language", gettext(NOT_A_LANGUAGE))
        return language


class WholeNumber(serializers.IntegerField):
    """A JSON number without fraction or exponent. true and 5.0 are refused."""

    def __init__(self, *, min: int | None = None, max: int | None = None, **kw: Any) -> None:
        super().__init__(**kw)
        limits: list[Callable[[int], None]] = []
        if min is not None:
            limits.append(UnderMinimum(min))
        if max is not None:
            limits.append(OverMaximum(max))
        self.validators = [*self.validators, *limits]

    @override
    def to_internal_value(self, data: object) -> int:
        if type(data) is not int:
            refuse("not_a_number", gettext("Must be a whole number."))
        return data


class Flag(serializers.BooleanField):
    @override
    def to_internal_value(self, data: object) -> bool:
        if not isinstance(data, bool):
            refuse("not_a_boolean", gettext("Must be true or false."))
        return data


class Timestamp(serializers.DateTimeField):
    """Reads ISO 8601, as UTC if it has no offset. Writes UTC with milliseconds."""

    @override
    def to_internal_value(self, value: object) -> datetime:
        try:
            return parse_timestamp(text_or_refuse(value))
        except ValueError:
            refuse(
                "not_a_timestamp", gettext("Must be an ISO 8601 date and time, years 1 to 9999.")
            )

    @override
    def to_representation(self, value: datetime) -> str:
        return format_timestamp(value)


class Day(serializers.DateField):
    """A date such as `2026-12-01`."""

    @override
    def to_internal_value(self, value: object) -> date:
        text = text_or_refuse(value)
        if _DAY.fullmatch(text):
            with suppress(ValueError):
                return date.fromisoformat(text)
        refuse("not_a_date", gettext("Must be a date such as 2026-12-01."))


@extend_schema_field({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"})
class ClockTime(serializers.Field[time, object, str, Any]):
    """A time of day such as `09:00`."""

    @override
    def to_internal_value(self, data: object) -> time:
        text = text_or_refuse(data)
        if not _CLOCK_TIME.fullmatch(text):
            refuse("not_a_local_time", gettext("Must be a time from 00:00 to 23:59."))
        return time.fromisoformat(text)

    @override
    def to_representation(self, value: time) -> str:
        return f"{value:%H:%M}"


class Id(serializers.UUIDField):
    """A UUID with hyphens, in either case."""

    @override
    def to_internal_value(self, data: object) -> UUID:
        try:
            return parse_uuid(text_or_refuse(data))
        except ValueError:
            refuse("not_a_uuid", gettext("Must be a hyphenated UUID."))


class Choice(serializers.ChoiceField):
    """One of these strings, with the same case."""

    def __init__(self, choices: Iterable[str], **kw: Any) -> None:
        super().__init__(choices=list(choices), **kw)

    @override
    def to_internal_value(self, data: object) -> str:
        word = text_or_refuse(data)
        if word not in self.choices:
            refuse(
                "not_a_choice",
                gettext("Must be one of: %(choices)s.") % {"choices": ", ".join(self.choices)},
            )
        return word


class ListOf(serializers.ListField):
    """`min_length` to `max_length` of `child`. The number is checked before the entries."""

    def __init__(
        self,
        child: serializers.Field[Any, Any, Any, Any],
        *,
        max_length: int,
        min_length: int = 1,
        **kw: Any,
    ) -> None:
        super().__init__(child=child, min_length=min_length, max_length=max_length, **kw)

    @override
    def to_internal_value(self, data: object) -> list[Any]:
        if not isinstance(data, list):
            refuse("not_a_list", gettext("Must be a list."))
        if not data and self.min_length:
            refuse("empty", gettext("Must not be empty."))
        if self.max_length is not None and len(data) > self.max_length:
            refuse(
                "too_many",
                gettext("Must have at most %(most)s entries.") % {"most": self.max_length},
            )
        return list(_children(self.child, enumerate(data)).values())


def without_nulls(
    data: dict[str, Any], child: serializers.Field[Any, Any, Any, Any]
) -> dict[str, Any]:
    """The names with a value. A null counts only if it means something to `child`."""
    if child.allow_null:
        return data
    return {name: each for name, each in data.items() if each is not None}


class MapOf(serializers.DictField):
    """An object with at most `most` names, whose values are all of `child`."""

    most: int

    @override
    def to_internal_value(self, data: object) -> dict[str, Any]:
        if not isinstance(data, dict):
            refuse("not_an_object", gettext("Must be an object."))
        given = without_nulls(data, self.child)
        if len(given) > self.most:
            refuse("too_many", gettext("Must have at most %(most)s names.") % {"most": self.most})
        return _children(self.child, given.items())


@extend_schema_field(
    {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": MAX_TEXTS}
)
class StringMap(MapOf):
    """An object whose values are all strings."""

    child = Text()
    most = MAX_TEXTS


_Key = TypeVar("_Key", bound=Hashable)


def _children(
    child: serializers.Field[Any, Any, Any, Any], items: Iterable[tuple[_Key, object]]
) -> dict[_Key, Any]:
    """Validates each item with `child`. Stops when there are more errors than are shown."""
    values: dict[_Key, Any] = {}
    errors: dict[Any, Any] = {}
    for key, item in items:
        try:
            values[key] = child.run_validation(item)
        except serializers.ValidationError as error:
            errors[key] = error.detail
            if _count(errors) > MAX_ERRORS:
                break
    if errors:
        raise serializers.ValidationError(errors)
    return values


def _count(detail: Any) -> int:
    """How many errors a ValidationError's `detail` contains."""
    if isinstance(detail, dict):
        return sum(map(_count, detail.values()))
    return len(detail)


class StrictSerializer(serializers.Serializer[Any]):
    """The shape of an input object. An undeclared field is an error; without `refuse_unknown` only
    if its name is a misspelling."""

    refuse_unknown = True
    # For the API's document: names of fields that it shows as optional, but that may not be null.
    never_null: frozenset[str] = frozenset()

    @classmethod
    def checked(cls, data: object) -> dict[str, Any]:
        """Returns the validated input. Raises ValidationError, which may lack errors beyond
        MAX_ERRORS."""
        return dict(cls._shared().run_validation(data))

    @classmethod
    @cache
    def _shared(cls) -> Self:
        """One instance for all requests, because DRF copies all fields for each new serializer.
        Validation does not change it, so threads may share it."""
        return cls()

    @override
    def run_validation(self, data: Any = empty) -> Any:
        if data is not empty and data is not None and not isinstance(data, dict):
            refuse("not_an_object", gettext("Must be an object."))
        if isinstance(data, dict) and self._has_too_many(data):
            refuse(
                "too_many",
                gettext("Must have at most %(most)s fields.") % {"most": len(self.fields)},
            )
        return super().run_validation(data)

    def _has_too_many(self, data: Mapping[str, Any]) -> bool:
        return self.refuse_unknown and len(data) > len(self.fields) + MAX_UNKNOWN

    @override
    def to_internal_value(self, data: dict[str, Any]) -> Any:
        """As DRF's method, but in a tenth of its time, because most fields are missing, and a
        missing field costs nothing."""
        known = self._inputs.defaults()
        errors: dict[str, Any] = {}
        for name, field, validate in self._inputs.asked(data):
            try:
                if field.required or self.gives(data, name):
                    value = field.run_validation(data.get(name, empty))
                elif field.default is not empty:
                    value = field.default() if callable(field.default) else field.default
                else:
                    continue
                self.set_value(known, field.source_attrs, validate(value) if validate else value)
            except serializers.ValidationError as error:
                errors[name] = error.detail
            except serializers.SkipField:
                continue
        errors |= self._unknown(data)
        if errors:
            raise serializers.ValidationError(errors)
        return known

    @override
    def run_validators(self, value: Any) -> None:
        """Without DRF's copy of the input if there are none, as usual."""
        if self.validators:
            super().run_validators(value)

    def gives(self, data: Mapping[str, Any], name: str) -> bool:
        """Whether `data` has a value for this field, or a null that means something."""
        return data.get(name) is not None or (name in data and self.fields[name].allow_null)

    @cached_property
    def _inputs(self) -> Inputs:
        return Inputs.of(self)

    def _unknown(self, data: Mapping[str, Any]) -> dict[str, list[serializers.ErrorDetail]]:
        if self.refuse_unknown:
            names = [name for name in data if name not in self.fields]
            return {name: _unknown_field(name, self.fields) for name in names}
        # Also fields that a subclass has removed for some inputs, which are ignored there.
        known = self._declared_fields
        others = islice((name for name in data if name not in known), MOST_COMPARED)
        return {name: _unknown_field(name, known) for name in others if meant_name(name, known)}


def _unknown_field(name: str, known: Iterable[str]) -> list[serializers.ErrorDetail]:
    return [serializers.ErrorDetail(no_such_field(name, known), code="unknown_field")]
