"""The keys that Apple documents for `aps`, with their types.

Apple, "Generating a remote notification", tables of the keys of aps, alert and sound.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

_Check = Callable[[Any], bool]


def is_aps(value: Mapping[str, Any]) -> bool:
    """Whether Apple documents every key, and all values have the right type and range."""
    return _is_object(value, _APS)


def _is_object(value: object, keys: Mapping[str, _Check]) -> bool:
    return isinstance(value, dict) and all(
        name in keys and keys[name](each) for name, each in value.items()
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_flag(value: object) -> bool:
    """Apple writes flags as numbers."""
    return _is_whole(value) and value in (0, 1)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_level(value: object) -> bool:
    return value in ("passive", "active", "time-sensitive", "critical")


def _is_alert(value: object) -> bool:
    return _is_text(value) or _is_object(value, _ALERT)


def _is_sound(value: object) -> bool:
    return _is_text(value) or _is_object(value, _SOUND)


_ALERT: Final[Mapping[str, _Check]] = {
    **dict.fromkeys(("title", "subtitle", "body", "launch-image"), _is_text),
    **dict.fromkeys(("title-loc-key", "subtitle-loc-key", "loc-key"), _is_text),
    **dict.fromkeys(("title-loc-args", "subtitle-loc-args", "loc-args"), _is_texts),
}
_SOUND: Final[Mapping[str, _Check]] = {
    "critical": _is_flag,
    "name": _is_text,
    "volume": _is_share,
}
_APS: Final[Mapping[str, _Check]] = {
    "alert": _is_alert,
    "badge": _is_whole,
    "sound": _is_sound,
    "thread-id": _is_text,
    "category": _is_text,
    "content-available": _is_flag,
    "mutable-content": _is_flag,
    "target-content-id": _is_text,
    "interruption-level": _is_level,
    "relevance-score": _is_number,
    "filter-criteria": _is_text,
    **dict.fromkeys(("stale-date", "timestamp", "dismissal-date"), _is_whole),
    **dict.fromkeys(("content-state", "attributes"), lambda value: isinstance(value, dict)),
    **dict.fromkeys(("event", "attributes-type"), _is_text),
}
