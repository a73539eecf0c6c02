"""Checks the fields of one row, whatever the format of its file.

The names are those of `POST /subscribe` and of the export of pushsvc. The checks are those of a
registration, with the same codes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeVar

from django.conf import settings
from django.utils.translation import gettext
from rest_framework import serializers

from pushsvc.common.endpoints import TOKEN_SERVICES, EndpointNotAllowed, check_endpoint
from pushsvc.common.http.drf import errors_of
from pushsvc.common.http.fields import Flag
from pushsvc.common.http.strict_json import is_storable
from pushsvc.common.languages import NOT_A_LANGUAGE, canonical_language
from pushsvc.common.platforms import Platform
from pushsvc.common.texts import later
from pushsvc.common.timestamps import NOT_A_TIMEZONE, canonical_timezone, parse_timestamp
from subscriptions_app.addresses import (
    Address,
    checked_auth,
    checked_p256dh,
    is_fcm_address,
    is_ios_token,
    url_spelling,
)
from subscriptions_app.categories.fields import Choices
from subscriptions_app.categories.services import MAX_STORED
from subscriptions_app.devices.fields import Attributes
from subscriptions_app.importing.values import PersonRow, Result, Row, refused
from subscriptions_app.people.fields import ExternalId
from subscriptions_app.tags.fields import Tags

T = TypeVar("T")
_EXTERNAL_ID: Final = ExternalId()
_ATTRIBUTES: Final = Attributes()
_TAGS: Final = Tags()
_CHOICES: Final = Choices(most=MAX_STORED)  # an export has those of archived categories
_OPTED_OUT: Final = Flag()
_MAX_CODE: Final = 64
_AHEAD: Final = timedelta(days=1)  # clocks of other services, and times without a zone
_NOT_A_MOMENT: Final = later(
    "Must be a date and time of ISO 8601, such as 2026-11-20T15:11:00Z. Days as "
    "20.11.2026, numbers of Excel, and seconds since 1970 are also read."
)
_TOKENS: Final[Mapping[Platform, tuple[Callable[[str], bool], str]]] = {
    Platform.ANDROID: (
        is_fcm_address,
        later("Must be an FCM registration token or a Firebase installation id."),
    ),
    Platform.IOS: (
        is_ios_token,
        later("Must be 32 to 200 hexadecimal digits. An FCM token of an iOS app is no APNs token."),
    ),
}


class _Refused(Exception):
    def __init__(self, code: str, attr: str, detail: str) -> None:
        super().__init__(code)
        self.result = refused(code, attr, detail)


def row_of(given: Mapping[str, Any], now: datetime) -> Row | Result:
    """The row with these fields, or why it is refused. Unknown fields are ignored."""
    try:
        return _row(given, now)
    except _Refused as error:
        return error.result


def person_of(given: Mapping[str, Any]) -> PersonRow | Result:
    """The person with these fields, or why the row is refused. Unknown fields are ignored."""
    try:
        external_id = _checked(given, "external_id", _EXTERNAL_ID)
        if external_id is None:
            raise _Refused("required", "external_id", gettext("The row names nobody."))
        opted_out = _checked(given, "opted_out", _OPTED_OUT) or False
        return PersonRow(external_id, _choices(given) or {}, opted_out)
    except _Refused as error:
        return error.result


def moment_of(value: object) -> datetime:
    """A date and time as people and spreadsheets write it. Raises ValueError.

    A day is its beginning in UTC. Numbers are Excel's days since 1899-12-30, or seconds or
    milliseconds since 1970. `11/12/2026` is refused, because it is two different days.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not a moment")
    text = str(value).strip().removesuffix(" UTC")
    if _NUMBER.fullmatch(text):
        return _numbered(float(text.replace(",", ".")))
    if day := _DAY.fullmatch(text):
        text = f"{day[1]}T00:00"
    elif dotted := _DOTTED.fullmatch(text):
        day_, month, year, time = dotted.groups()
        text = f"{year}-{int(month):02}-{int(day_):02}T{time or '00:00'}"
    return parse_timestamp(text)


def _numbered(number: float) -> datetime:
    if _EXCEL_DAYS[0] <= number < _EXCEL_DAYS[1]:
        # To the second, because days as floating point numbers are not exact.
        return _EXCEL_START + timedelta(seconds=round(number * 86_400))
    seconds = number / 1000 if number >= _MILLISECONDS else number
    if not _SECONDS[0] <= seconds < _SECONDS[1]:
        raise ValueError("not a moment")
    return datetime.fromtimestamp(seconds, UTC)


def _row(given: Mapping[str, Any], now: datetime) -> Row:
    platform = _platform(given)
    address, service = _address(platform, given)
    keys = _keys(platform, given)
    key = _text(given, "vapid_public_key") if platform == Platform.WEB else None
    expired_at = _past(given, "expired_at", now)
    if expired_at is None and given.get("active") is False:
        raise _Refused(
            "required", "expired_at", gettext("A row that is not active needs `expired_at`.")
        )
    return Row(
        address,
        service,
        **keys,
        vapid_public_key=url_spelling(key) if key else None,
        external_id=_checked(given, "external_id", _EXTERNAL_ID),
        language=_named(given, "language", _language, "not_a_language", NOT_A_LANGUAGE),
        timezone=_named(given, "timezone", _timezone, "not_a_timezone", NOT_A_TIMEZONE),
        attributes=_checked(given, "attributes", _ATTRIBUTES),
        tags=_tags(given),
        choices=_choices(given),
        created_at=_past(given, "created_at", now),
        last_seen_at=_past(given, "last_seen_at", now),
        expired_at=expired_at,
        expired_code=(_text(given, "expired_code") or "")[:_MAX_CODE],
    )


def _platform(given: Mapping[str, Any]) -> Platform:
    word = _text(given, "platform") or Platform.WEB.value
    try:
        return Platform(word)
    except ValueError:
        detail = gettext("Must be one of: %(choices)s.") % {"choices": ", ".join(Platform)}
        raise _Refused("not_a_choice", "platform", detail) from None


def _address(platform: Platform, given: Mapping[str, Any]) -> tuple[Address, str]:
    name = "endpoint" if platform == Platform.WEB else "provider_token"
    text = _text(given, name)
    if not text:
        raise _Refused("required", name, gettext("The row has no address."))
    if platform == Platform.WEB:
        try:
            endpoint = check_endpoint(
                text,
                trusted_origins=settings.WEBPUSH_TRUSTED_ORIGINS,
                allowed_hosts=settings.WEBPUSH_ALLOWED_HOSTS,
            )
        except EndpointNotAllowed as error:
            raise _Refused("endpoint_not_allowed", name, error.reason) from error
        return Address.of(platform, text), endpoint.service
    fits, detail = _TOKENS[platform]
    if not fits(text):
        raise _Refused("not_a_token", name, detail)
    return Address.of(platform, text), TOKEN_SERVICES[platform]


def _keys(platform: Platform, given: Mapping[str, Any]) -> dict[str, str]:
    if platform != Platform.WEB:
        auth = _text(given, "auth")
        return {"auth": _key(auth, checked_auth, "auth", *_NOT_AUTH) if auth else ""}
    keys = given.get("keys")
    if not isinstance(keys, Mapping) or not keys.get("p256dh") or not keys.get("auth"):
        detail = gettext(
            "A browser gets messages only with `p256dh` and `auth` of its subscription."
        )
        raise _Refused("keys_missing", "keys", detail)
    return {
        "p256dh": _key(keys["p256dh"], checked_p256dh, "keys.p256dh", *_NOT_A_POINT),
        "auth": _key(keys["auth"], checked_auth, "keys.auth", *_NOT_AUTH),
    }


def _key(text: object, check: Callable[[str], str], attr: str, code: str, detail: str) -> str:
    try:
        if isinstance(text, str):
            return check(text)
    except ValueError:
        pass
    raise _Refused(code, attr, detail)


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _Refused("not_a_string", name, gettext("Must be a string."))
    if not is_storable(value):
        raise _Refused(
            "malformed", name, gettext("Must not contain NUL or half of a surrogate pair.")
        )
    return value


def _named(
    given: Mapping[str, Any],
    name: str,
    canonical: Callable[[str], str | None],
    code: str,
    detail: str,
) -> str | None:
    text = _text(given, name)
    if not text:
        return None
    found = canonical(text)
    if found is None:
        raise _Refused(code, name, detail)
    return found or None


@lru_cache(maxsize=1024)
def _language(text: str) -> str | None:
    """ "" if the language is unknown, as a registration reads it."""
    return "" if text.lower() == "und" else canonical_language(text)


@lru_cache(maxsize=1024)
def _timezone(text: str) -> str | None:
    return "" if text.lower() == "etc/unknown" else canonical_timezone(text)


def _past(given: Mapping[str, Any], name: str, now: datetime) -> datetime | None:
    value = given.get(name)
    if value is None or value == "":
        return None
    try:
        moment = moment_of(value)
    except (ValueError, OverflowError):
        raise _Refused("not_a_timestamp", name, _NOT_A_MOMENT) from None
    if moment > now + _AHEAD:
        raise _Refused("out_of_range", name, gettext("Must not be in the future."))
    return min(moment, now)


def _choices(given: Mapping[str, Any]) -> Mapping[str, bool] | None:
    choices = _checked(given, "choices", _CHOICES)
    return choices and {key: each for key, each in choices.items() if each is not None}


def _tags(given: Mapping[str, Any]) -> Sequence[str] | None:
    value = given.get("tags")
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return list(_known_tags(tuple(value)))
    return _checked(given, "tags", _TAGS)


@lru_cache(maxsize=1024)
def _known_tags(tags: Sequence[str]) -> Sequence[str]:
    checked = _checked({"tags": list(tags)}, "tags", _TAGS)
    return tuple(checked or ())


def _checked(
    given: Mapping[str, Any], name: str, field: serializers.Field[T, Any, Any, Any]
) -> T | None:
    value = given.get(name)
    if value is None:
        return None
    try:
        checked: T = field.run_validation(value)
    except serializers.ValidationError as error:
        first = errors_of(error)[0]
        attr = f"{name}.{first.attr}" if first.attr else name
        raise _Refused(first.code, attr, first.detail) from error
    return checked


_NOT_AUTH: Final = ("not_16_bytes", later("Must be 16 bytes, as base64url."))
_NOT_A_POINT: Final = (
    "not_a_p256_point",
    later("Must be a point on P-256 (65 bytes), as base64url."),
)
_NUMBER: Final = re.compile(r"[0-9]{4,13}([.,][0-9]+)?", re.ASCII)
_DAY: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})", re.ASCII)
_DOTTED: Final = re.compile(
    r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})(?: +([0-9]{2}:[0-9]{2}(?::[0-9]{2})?))?", re.ASCII
)
_EXCEL_START: Final = datetime(1899, 12, 30, tzinfo=UTC)
_EXCEL_DAYS: Final = (36_526, 73_051)  # the years 2000 to 2099
_SECONDS: Final = (946_684_800, 4_102_444_800)
_MILLISECONDS: Final = 10**11
