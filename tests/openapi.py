"""docs/openapi.yaml, read once in a process."""

from functools import cache
from typing import Any

import yaml
from django.conf import settings

PATH = settings.BASE_DIR / "docs" / "openapi.yaml"


@cache
def document() -> dict[str, Any]:
    """Not to be changed. It is large, and the reader that is written in C takes an eighth of the
    time."""
    read: dict[str, Any] = yaml.load(PATH.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return read
