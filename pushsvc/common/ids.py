"""Identifiers: UUIDs, numbers and tags. New UUIDs have version 7 (RFC 9562 section 5.7)."""

import os
import re
import time
from datetime import datetime
from uuid import UUID

UUID_PATTERN = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
TAG_PATTERN = "[A-Za-z0-9_.:-]{1,64}"
_WHOLE = re.compile(UUID_PATTERN, re.ASCII)
_TAG = re.compile(TAG_PATTERN, re.ASCII)
_TAG_START = re.compile(TAG_PATTERN.replace("{1,", "{0,"), re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


def uuid7() -> UUID:
    """A new id that sorts by time: 48 bits of milliseconds, then 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & ((1 << 48) - 1)) << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


def uuid7_at(moment: datetime) -> UUID:
    """The smallest id that can be generated at this moment or later."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)


def parse_uuid(text: str) -> UUID:
    """Parses a UUID with hyphens, in either case. Raises ValueError."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("not a hyphenated UUID")
    return UUID(text)


def parse_number(text: str) -> int:
    """Parses a numeric key of a package's table. Raises ValueError."""
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    return int(text)


def is_tag(text: str) -> bool:
    return _TAG.fullmatch(text) is not None


def is_tag_start(text: str) -> bool:
    """Whether a tag can begin with the text, which may be empty."""
    return _TAG_START.fullmatch(text) is not None


class UUIDConverter:
    """Path converter `id`. Django's own refuses upper case."""

    regex = UUID_PATTERN

    def to_python(self, value: str) -> UUID:
        return UUID(value)

    def to_url(self, value: UUID) -> str:
        return str(value)


class TagConverter:
    """Path converter `tag`: a tag of devices."""

    regex = TAG_PATTERN

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value
