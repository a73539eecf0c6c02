"""Reads and parses environment variables.

A malformed value does not stop the import of the settings. The default is used, the error is added
to `errors`, and the system check in `channels_app.checks` reports it by name.
"""

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")


@dataclass(frozen=True)
class EnvError:
    name: str
    message: str


@dataclass
class Env:
    values: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    errors: list[EnvError] = field(default_factory=list)

    def text(self, name: str, default: str = "") -> str:
        """The stripped value of the variable, or of the file that `NAME_FILE` names."""
        if name in self.values:
            return self.values[name].strip()
        path = self.values.get(f"{name}_FILE", "")
        if not path:
            return default
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self.errors.append(EnvError(f"{name}_FILE", f"cannot be read: {error}"))
            return default

    def parsed(self, name: str, default: T, parse: Callable[[str], T], expected: str) -> T:
        """`parse(value)`; a ValueError becomes an error that says what was expected."""
        raw = self.text(name)
        if not raw:
            return default
        try:
            return parse(raw)
        except ValueError:
            self.errors.append(EnvError(name, f"is {_shown(name, raw)}, expected {expected}"))
            return default

    def whole(self, name: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
        def parse(raw: str) -> int:
            number = int(raw)
            if not least <= number <= most:
                raise ValueError(raw)
            return number

        return self.parsed(name, default, parse, f"a whole number from {least} to {most}")

    def address(self, name: str, expected: str, default: str = "") -> str:
        """A URL whose host and port can be read. A broker may have several, with semicolons."""

        def parse(raw: str) -> str:
            for each in raw.split(";"):
                _ = urlsplit(each).port
            return raw

        return self.parsed(name, default, parse, expected)

    def share(self, name: str, default: float) -> float:
        def parse(raw: str) -> float:
            number = float(raw)
            if not 0 <= number <= 1:
                raise ValueError(raw)
            return number

        return self.parsed(name, default, parse, "a number from 0 to 1")

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        def parse(raw: str) -> str:
            return choices[choices.index(raw)]

        return self.parsed(name, default, parse, " or ".join(choices))

    def words(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Words separated by commas, without the blanks around them."""
        raw = self.text(name)
        if not raw:
            return default
        return tuple(word.strip() for word in raw.split(",") if word.strip())


def http_address(raw: str) -> str:
    """Returns the URL. Raises ValueError if it is not one of http or https with a host."""
    parts = urlsplit(raw)
    _ = parts.port
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(raw)
    return raw


def sentry_dsn(raw: str) -> str:
    """Returns the DSN. Raises ValueError if it has no key, or no number of a project."""
    parts = urlsplit(http_address(raw))
    if not parts.username or not parts.path.rpartition("/")[2].isdecimal():
        raise ValueError(raw)
    return raw


def require_package(package: str, *, of: str, for_setting: str) -> None:
    """Raises ImproperlyConfigured if the package of an optional setting is not installed.
    `of`: the file in requirements/ that installs it."""
    if importlib.util.find_spec(package) is None:
        raise ImproperlyConfigured(
            f"{for_setting} is set, but {package} is not installed: install"
            f" requirements/{of}.txt, or remove the setting."
        )


def _shown(name: str, raw: str) -> str:
    is_secret = any(part in name for part in ("KEY", "TOKEN", "URL", "DSN"))
    return "unreadable" if is_secret else repr(raw[:80])
