"""The formats of files: what their records say in the names of fields.py.

The vendors' documents: OneSignal, "Exporting Data" (CSV); Amazon Pinpoint, "Exporting endpoints"
(one JSON object a line); W3C Push API, `PushSubscription.toJSON()`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, BinaryIO, Final, NamedTuple

from django.utils.translation import gettext

from pushsvc.common.languages import canonical_language
from pushsvc.common.platforms import Platform
from pushsvc.common.texts import later
from pushsvc.common.timestamps import canonical_timezone
from subscriptions_app.importing.fields import person_of, row_of
from subscriptions_app.importing.files import csv_records, json_records, json_value
from subscriptions_app.importing.values import PersonRow, Result, Row, refused
from subscriptions_app.models import MAX_ATTRIBUTES

_Fields = Mapping[str, Any]


class Format(StrEnum):
    PUSHSVC_NDJSON = "pushsvc_ndjson"
    PEOPLE_NDJSON = "people_ndjson"
    WEBPUSH_JSON = "webpush_json"
    TOKENS_CSV = "tokens_csv"
    ONESIGNAL_CSV = "onesignal_csv"
    PINPOINT_JSON = "pinpoint_json"

    @property
    def is_csv(self) -> bool:
        return self in (Format.TOKENS_CSV, Format.ONESIGNAL_CSV)


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a file. `columns`: the name of this service for a name of the file; empty to
    ignore it. `attributes`: the attributes to take; None: all of `tokens_csv` and
    `pushsvc_ndjson`, and none of other vendors. `tags_from`: the attribute or column whose words
    become tags. `vapid_public_key`: of browsers whose row names none. `platform`: of rows of
    `tokens_csv` that name none."""

    format: Format
    columns: Mapping[str, str] = field(default_factory=dict)
    attributes: Sequence[str] | None = None
    tags_from: str = ""
    vapid_public_key: str | None = None
    platform: Platform | None = None


class Read(NamedTuple):
    """A row of a file, or why it is refused, with the line where it begins."""

    line: int
    row: Row | PersonRow | Result


def rows_read(
    stream: BinaryIO,
    reading: Reading,
    dropped: Counter[str],
    now: datetime,
    first_line: int | None = None,
) -> Iterator[Read]:
    """Reads the rows one by one. Counts attributes that are not taken in `dropped`. Raises
    FileUnreadable, also after some rows. `first_line`: the line of the file at which the stream
    begins, not counting the header of CSV."""
    records = (csv_records if reading.format.is_csv else json_records)(stream, first_line)
    mapped = _Mapping(reading, dropped, now)
    for line, fields in records:
        yield Read(line, fields if isinstance(fields, Result) else mapped.row(fields, line))


class _Mapping:
    def __init__(self, reading: Reading, dropped: Counter[str], now: datetime) -> None:
        self._reading, self._dropped, self._now = reading, dropped, now

    def row(self, given: _Fields, line: int) -> Row | PersonRow | Result:
        if self._reading.format == Format.PEOPLE_NDJSON:
            return person_of(given)
        fields = _FORMATS[self._reading.format](self._renamed(given), self)
        if isinstance(fields, Result):
            return fields
        if self._reading.tags_from:
            fields = self._tagged(fields)
        key = self._reading.vapid_public_key
        if key and not fields.get("vapid_public_key"):
            fields = {**fields, "vapid_public_key": key}
        return row_of(fields, self._now)

    def _renamed(self, given: _Fields) -> _Fields:
        columns = self._reading.columns
        if not self._reading.format.is_csv:
            return given
        named = {columns.get(name, _plain(name)): each for name, each in given.items()}
        named.pop("", None)
        return named

    def taken(self, attributes: _Fields, *, all_by_default: bool) -> _Fields | None:
        """The attributes to store."""
        wanted = self._reading.attributes
        if wanted is None and all_by_default:
            return attributes or None
        named = set(wanted or ())
        self._dropped.update(
            name for name in attributes if name not in named and name != self._reading.tags_from
        )
        kept = named | ({self._reading.tags_from} - {""})
        return {name: each for name, each in attributes.items() if name in kept} or None

    @property
    def platform(self) -> Platform | None:
        return self._reading.platform

    def is_for_tags(self, attributes: _Fields) -> bool:
        """Whether one of the attributes only becomes tags."""
        return self._reading.tags_from in attributes

    def _tagged(self, fields: _Fields) -> _Fields:
        """Takes tags from an attribute: several words, or a list."""
        name = self._reading.tags_from
        given, before = fields.get("attributes") or {}, fields.get("tags") or []
        if not isinstance(given, dict) or not isinstance(before, list):
            return fields  # which are refused
        attributes = dict(given)
        value = attributes.get(name)
        if name not in (self._reading.attributes or ()):
            attributes.pop(name, None)
        if value is None:
            return {**fields, "attributes": attributes or None}
        tags = [*before, *_words(str(value))]
        return {**fields, "attributes": attributes or None, "tags": tags}


def _pushsvc(given: _Fields, mapping: _Mapping) -> _Fields | Result:
    attributes = given.get("attributes")
    if isinstance(attributes, dict):
        return {**given, "attributes": mapping.taken(attributes, all_by_default=True) or {}}
    return given


def _webpush(given: _Fields, mapping: _Mapping) -> _Fields | Result:
    subscription = given.get("subscription")
    if isinstance(subscription, str):  # as libraries store it in a column of text
        subscription = json_value(subscription, "subscription")
        if isinstance(subscription, Result):
            return subscription
    found = subscription if isinstance(subscription, dict) else given
    names = ("endpoint", "keys")
    return {**given, **{name: found.get(name) for name in names}, "platform": Platform.WEB.value}


def _tokens(given: _Fields, mapping: _Mapping) -> _Fields | Result:
    address = given.get("endpoint") or given.get("token") or given.get("provider_token")
    own = "web" if given.get("endpoint") else mapping.platform or ""
    word = str(given.get("platform", own)).lower()
    platform = _PLATFORMS.get(word)
    if platform is None:
        detail = gettext("Must be one of: %(choices)s.") % {"choices": ", ".join(Platform)}
        return refused("not_a_choice" if word else "required", "platform", detail)
    others = {name: each for name, each in given.items() if name not in TOKEN_COLUMNS}
    taken = mapping.taken(others, all_by_default=True)
    if taken is not None and len(taken) > MAX_ATTRIBUTES + (mapping.is_for_tags(taken)):
        detail = gettext(
            "The row has %(count)s attributes: %(names)s. A subscriber has at most "
            "%(most)s. Name those to take."
        ) % {"count": len(taken), "names": ", ".join(sorted(taken))[:300], "most": MAX_ATTRIBUTES}
        return refused("too_many", "attributes", detail)
    kept = {name: given[name] for name in _KEPT if name in given}
    return {
        **kept,
        **_place(platform, address),
        "keys": {"p256dh": given.get("p256dh"), "auth": given.get("auth")},
        "auth": given.get("auth"),
        "tags": _words(given["tags"]) if "tags" in given else None,
        "attributes": taken,
    }


def _onesignal(given: _Fields, mapping: _Mapping) -> _Fields | Result:
    kind = str(given.get("device_type", ""))
    platform = _ONESIGNAL.get(kind)
    if platform is None:
        if not kind:
            return refused("required", "device_type", gettext("The row has no device type."))
        code = _ONESIGNAL_REFUSED.get(kind, "not_push")
        return refused(
            code,
            "device_type",
            gettext("Device type %(kind)s: %(reason)s")
            % {"kind": kind[:20], "reason": _REASONS[code]},
        )
    if _is_off(given):
        return refused("not_subscribed", "notification_types", _REASONS["not_subscribed"])
    attributes = json_value(given.get("tags") or "{}", "tags")
    if isinstance(attributes, Result):
        return attributes
    if not isinstance(attributes, dict):
        return refused("not_an_object", "tags", gettext("Must be a JSON object."))
    return {
        **_place(platform, given.get("identifier")),
        "keys": {"p256dh": given.get("web_p256"), "auth": given.get("web_auth")},
        "external_id": given.get("external_user_id"),
        **_locale(given.get("language"), given.get("timezone_id")),
        "created_at": given.get("created_at"),
        "last_seen_at": given.get("last_active"),
        "attributes": mapping.taken(attributes, all_by_default=False),
    }


def _is_off(given: _Fields) -> bool:
    types = str(given.get("notification_types", "1"))
    is_invalid = str(given.get("invalid_identifier", "")).lower() in ("true", "t", "1", "yes")
    return is_invalid or _BELOW_ONE.fullmatch(types) is not None


def _pinpoint(given: _Fields, mapping: _Mapping) -> _Fields | Result:
    kind = str(given.get("ChannelType", ""))
    platform = _PINPOINT.get(kind)
    if platform is None:
        code = "wrong_environment" if kind.endswith("_SANDBOX") else "not_push"
        return refused(code, "ChannelType", f"{kind[:50] or 'None'}: {_REASONS[code]}")
    if given.get("OptOut") == "ALL" or given.get("EndpointStatus") == "INACTIVE":
        return refused("not_subscribed", "OptOut", _REASONS["not_subscribed"])
    demographic, user = _object(given, "Demographic"), _object(given, "User")
    attributes = {
        **{name: _first(each) for name, each in _object(given, "Attributes").items()},
        **_object(given, "Metrics"),
    }
    return {
        **_place(platform, given.get("Address")),
        "external_id": user.get("UserId") or None,
        **_locale(demographic.get("Locale"), demographic.get("Timezone")),
        "created_at": given.get("CreationDate"),
        "last_seen_at": given.get("EffectiveDate"),
        "attributes": mapping.taken(attributes, all_by_default=False),
    }


def _object(given: _Fields, name: str) -> _Fields:
    value = given.get(name)
    return value if isinstance(value, dict) else {}


def _first(value: object) -> object:
    """Pinpoint's attributes are lists. Several values become one text."""
    if not isinstance(value, list):
        return value
    return value[0] if len(value) == 1 else ",".join(map(str, value))


def _place(platform: Platform, address: object) -> _Fields:
    name = "endpoint" if platform == Platform.WEB else "provider_token"
    return {"platform": platform.value, name: address}


def _locale(language: object, timezone: object) -> _Fields:
    """Vendors store whatever an app reported. A language or zone that nobody knows is left out,
    because it is no reason to lose the subscriber."""
    known: dict[str, Any] = {}
    if isinstance(language, str) and canonical_language(language) is not None:
        known["language"] = language
    if isinstance(timezone, str) and canonical_timezone(timezone) is not None:
        known["timezone"] = timezone
    return known


def _plain(name: str) -> str:
    """The name of a known column, however it is spelled. Other columns keep their names."""
    plain = plain_name(name)
    return plain if plain in _KNOWN else name


@lru_cache(maxsize=1_024)  # each row of a table has the same names
def plain_name(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name).lower()


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,;|]+", text) if word]


_BELOW_ONE: Final = re.compile("-[0-9]+|0+")  # of any length, which int() does not take
_KEPT: Final = (
    "vapid_public_key", "external_id", "language", "timezone", "created_at", "last_seen_at",
)  # fmt: skip
TOKEN_COLUMNS: Final = frozenset(
    {*_KEPT, "platform", "token", "endpoint", "provider_token", "p256dh", "auth", "tags"}
)
_KNOWN: Final = TOKEN_COLUMNS | {
    "device_type", "identifier", "web_p256", "web_auth", "external_user_id", "timezone_id",
    "last_active", "notification_types", "invalid_identifier",
}  # fmt: skip
_PLATFORMS: Final = {
    **{each.value: each for each in Platform},
    "fcm": Platform.ANDROID, "gcm": Platform.ANDROID, "apns": Platform.IOS, "browser": Platform.WEB,
}  # fmt: skip
_ONESIGNAL: Final = {
    "0": Platform.IOS, "1": Platform.ANDROID, "5": Platform.WEB, "8": Platform.WEB,
    "17": Platform.WEB,
}  # fmt: skip
_ONESIGNAL_REFUSED: Final = {
    "7": "safari_legacy",
    **dict.fromkeys(("2", "4", "6", "9", "10", "13"), "platform_not_served"),
}
_PINPOINT: Final = {"GCM": Platform.ANDROID, "APNS": Platform.IOS}
_REASONS: Final = {
    "safari_legacy": later("Safari's own push before Web Push needs Apple's website certificate."),
    "platform_not_served": later("This platform is not served."),
    "not_push": later("This is no push subscription."),
    "wrong_environment": later("A token of Apple's development environment gets no messages."),
    "not_subscribed": later("The subscriber gets no messages there."),
}
_FORMATS: Final[Mapping[Format, Callable[[_Fields, _Mapping], _Fields | Result]]] = {
    Format.PUSHSVC_NDJSON: _pushsvc,
    Format.WEBPUSH_JSON: _webpush,
    Format.TOKENS_CSV: _tokens,
    Format.ONESIGNAL_CSV: _onesignal,
    Format.PINPOINT_JSON: _pinpoint,
}
