"""What a file seems to be, by its beginning: for people, who then see it and correct it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any, Final

from subscriptions_app.importing.files import FileUnreadable, Table, json_records
from subscriptions_app.importing.formats import TOKEN_COLUMNS, Format, plain_name
from subscriptions_app.importing.values import Result

IGNORED: Final = "-"
_SAMPLES: Final = 3
_MOST_SAMPLE: Final = 40  # characters
# What our own lists of refused rows add to a file.
_OF_REFUSALS: Final = ("import_line", "import_code", "import_field", "import_reason")
_SPELLINGS: Final[Mapping[str, str]] = {
    **{name: name for name in TOKEN_COLUMNS},
    **dict.fromkeys(_OF_REFUSALS, IGNORED),
    **dict.fromkeys(
        ("device_token", "registration_token", "fcm_token", "apns_token", "push_token"), "token"
    ),
    **dict.fromkeys(("user_id", "userid", "customer_id", "external_user_id"), "external_id"),
    "locale": "language",
    "time_zone": "timezone",
    "last_active": "last_seen_at",
}


@dataclass(frozen=True, slots=True)
class Column:
    """`means`: the name of the field, IGNORED, or "" for an attribute."""

    name: str
    means: str
    samples: Sequence[str]


@dataclass(frozen=True, slots=True)
class Look:
    """`first_line`: where the first row begins. CSV has a `separator` and `columns`."""

    format: Format
    first_line: int = 1
    separator: str = ""
    columns: Sequence[Column] = ()


def looked_at(start: bytes, format_: Format | None = None) -> Look:
    """`start`: the beginning of a file, which may end in the middle of a row. Raises
    FileUnreadable."""
    if format_ is None and start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return Look(_json_format(start))
    if format_ is not None and not format_.is_csv:
        return Look(format_)
    table = Table(BytesIO(start))
    names = {plain_name(name) for name in table.header}
    guess = Format.ONESIGNAL_CSV if {"device_type", "identifier"} <= names else Format.TOKENS_CSV
    samples = _samples(table)
    columns = [
        Column(name, means, samples.get(name, ()))
        for name, means in zip(table.header, _meanings(table.header), strict=True)
    ]
    return Look(format_ or guess, table.first_line, table.separator, columns)


def _json_format(start: bytes) -> Format:
    fields: Any = next(iter(json_records(BytesIO(start)))).fields
    if isinstance(fields, Result):
        return Format.PUSHSVC_NDJSON
    if "ChannelType" in fields:
        return Format.PINPOINT_JSON
    if "opted_out" in fields:
        return Format.PEOPLE_NDJSON
    is_of_browser = "subscription" in fields or "keys" in fields
    return (
        Format.WEBPUSH_JSON if is_of_browser and "platform" not in fields else Format.PUSHSVC_NDJSON
    )


def _samples(table: Table) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    with suppress(FileUnreadable):  # at the end of a beginning
        for _, fields in islice(table.records(), _SAMPLES):
            if not isinstance(fields, Result):
                for name, text in fields.items():
                    found.setdefault(name, []).append(text[:_MOST_SAMPLE])
    return found


def _meanings(header: Sequence[str]) -> list[str]:
    """Two columns cannot mean the same. The one with the field's own name wins."""
    plain = [plain_name(name) for name in header]
    meanings: list[str] = []
    for name in plain:
        meaning = _SPELLINGS.get(name, "") if name else IGNORED
        is_field = meaning not in ("", IGNORED)
        if is_field and (meaning in meanings or (name != meaning and meaning in plain)):
            meaning = IGNORED if name == meaning else ""
        meanings.append(meaning)
    return meanings
