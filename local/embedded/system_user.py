"""The user of the embedded servers. PostgreSQL refuses to run as root."""

import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from local.embedded.home import EmbeddedError

USER_NAME = "pgserver"  # also used by the PostgreSQL wheel

_READ_ALL = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_ENTER_ALL = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


@dataclass(frozen=True)
class SystemUser:
    uid: int
    gid: int

    def own(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid)

    def entering_bit(self, folder: Path) -> int:
        """The permission bit with which this user may pass through the folder."""
        state = folder.stat()
        if state.st_uid == self.uid:
            return stat.S_IXUSR
        return stat.S_IXGRP if state.st_gid == self.gid else stat.S_IXOTH


def server_user(data: Path, say: Callable[[str], None]) -> SystemUser | None:
    """None means the current user. For root: the owner of the data or the home, or `pgserver`.

    So root may run a command in the home of an ordinary user without changing its owner.
    """
    if os.geteuid() != 0:
        return None
    for place in (data, data.parent):
        if place.exists() and (state := place.stat()).st_uid != 0:
            return SystemUser(state.st_uid, state.st_gid)
    try:
        entry = pwd.getpwnam(USER_NAME)
    except KeyError:
        entry = _made_user(say)
    return SystemUser(entry.pw_uid, entry.pw_gid)


def _made_user(say: Callable[[str], None]) -> pwd.struct_passwd:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        raise EmbeddedError(
            "PostgreSQL refuses to run as root, and there is no useradd: run as an ordinary user, "
            f"or create a user named {USER_NAME}"
        )
    options = ("--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin")
    made = subprocess.run(
        [useradd, *options, USER_NAME], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise EmbeddedError(
            f"PostgreSQL refuses to run as root, and creating the user {USER_NAME} failed: "
            f"{made.stderr.strip()}"
        )
    say(f"created the system user {USER_NAME}, because PostgreSQL refuses to run as root")
    return pwd.getpwnam(USER_NAME)


def open_path(user: SystemUser, target: Path, say: Callable[[str], None]) -> None:
    """Lets the user reach `target`: sets the bit to pass through the folders above, no other.

    Reports in one line which folders it changed.
    """
    opened = []
    for folder in reversed(target.resolve().parents):
        mode, bit = folder.stat().st_mode, user.entering_bit(folder)
        if not mode & bit:
            folder.chmod(mode | bit)
            opened.append(str(folder))
    if opened:
        say(f"allowed to pass through, not to read (chmod o+x): {', '.join(opened)}")


def open_programs(folder: Path, say: Callable[[str], None]) -> None:
    """Makes an installed tree readable to others, in case the umask prevented it."""
    closed = [path for path in (folder, *folder.rglob("*")) if not _is_open(path)]
    for path in closed:
        path.chmod(path.stat().st_mode | _missing_bits(path))
    if closed:
        say(f"made the programs under {folder} readable to others (chmod o+rX)")


def _is_open(path: Path) -> bool:
    mode = path.stat().st_mode
    return mode | _missing_bits(path) == mode


def _missing_bits(path: Path) -> int:
    is_entered = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
    return (_READ_ALL | _ENTER_ALL) if is_entered else _READ_ALL
