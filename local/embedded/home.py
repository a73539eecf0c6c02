"""`$PUSHSVC_HOME`: the folder of `make run` and the commands, by default `var/` in the checkout.

- secrets/NAME: one value each, mode 600
- settings.env: the settings that `make run` chose, mode 600
- demo.env: the demo channel, for shells, mode 600
- run/: locks, and the records of running processes
- log/: one file for each process
- postgres/, redis/: the data of the embedded servers
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_CHECKOUT = Path(__file__).resolve().parents[2]


class EmbeddedError(Exception):
    """An error for the person at the terminal. Its text is one line."""


class Home:
    """The folder. Its parts are created when they are first written."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()

    @classmethod
    def of_environment(cls) -> "Home":
        return cls(Path(os.environ.get("PUSHSVC_HOME") or _CHECKOUT / "var"))

    def folder(self, name: str) -> Path:
        """The folder of that name, created with access for its owner only."""
        path = self.root / name
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700, parents=True)
            self._adopt(path)
        except FileExistsError:
            return path
        except OSError as error:
            raise EmbeddedError(f"{path} cannot be created: {error.strerror}") from error
        return path

    def new_log(self, name: str) -> Path:
        """The path of a new empty log. The previous log becomes NAME.log.1."""
        path = self.folder("log") / f"{name}.log"
        if path.exists():
            path.replace(path.with_suffix(".log.1"))
        path.touch(mode=0o600)
        self._adopt(path)
        return path

    def secret(self, name: str, generate: Callable[[], str]) -> str:
        """The value stored under this name. Generated once, mode 600."""
        path = self.secret_file(name)
        if not path.exists():
            self.save_secret(name, generate())
        return self._read(path).strip()

    def save_secret(self, name: str, value: str) -> Path:
        """Replaces the value stored under this name. Returns its file."""
        self.write(f"secrets/{name}", value + "\n")
        return self.secret_file(name)

    def secret_file(self, name: str) -> Path:
        return self.root / "secrets" / name

    def saved_settings(self) -> dict[str, str]:
        """Settings for Django, by name. They contain no secrets."""
        lines = self._read(self.root / "settings.env").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def save_settings(self, chosen: Mapping[str, str]) -> None:
        """Replaces settings.env. Values are single lines."""
        self.write("settings.env", "".join(f"{k}={v}\n" for k, v in sorted(chosen.items())))

    def read_json(self, name: str) -> Any:
        """The value of the JSON file. None if there is no such file, or it is not JSON."""
        try:
            return json.loads(self._read(self.root / name))
        except ValueError:
            return None

    def write_json(self, name: str, value: object) -> None:
        self.write(name, json.dumps(value, indent=1) + "\n")

    def write(self, name: str, text: str) -> None:
        """Writes all or nothing, mode 600."""
        path = self.root / name
        folder = self.folder(str(Path(name).parent))
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        self._adopt(Path(temporary))
        os.replace(temporary, path)

    def open_lock(self, name: str) -> IO[str]:
        """The open file of a lock. The system releases the lock when its holder ends, even if it is
        killed."""
        path = self.folder("run") / f"{name}.lock"
        try:
            file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise EmbeddedError(f"{path} cannot be opened: {error.strerror}") from error
        self._adopt(path)
        return file

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock for starting and stopping servers of this home, and creating secrets."""
        with self.open_lock("servers") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _adopt(self, path: Path) -> None:
        """Changes the owner of a file that root wrote to the owner of the home."""
        owner = self.root.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.chown(path, owner.st_uid, owner.st_gid)

    def _read(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise EmbeddedError(f"{path} cannot be read: {error.strerror}") from error
