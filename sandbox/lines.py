"""A file of JSON lines, complete even if the process is killed. Mode 600, because of secrets."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class LineFile:
    """`path`: None keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def entries(self) -> list[dict[str, Any]]:
        if self._path is None or not self._path.exists():
            return []
        return [json.loads(line) for line in self._path.read_text(encoding="ascii").splitlines()]

    def append(self, entry: Mapping[str, object]) -> None:
        """Appends a line with one write, so that a killed process leaves only complete lines."""
        if self._path is None:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{json.dumps(entry)}\n".encode("ascii"))
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        if self._path:
            self._path.unlink(missing_ok=True)
