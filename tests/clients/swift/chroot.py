"""Debian 13 with its Swift compiler, in a chroot, and what it compiles.

The chroot shares the network with this machine, so that its programs reach the service. What it
mounts ends with the command that runs in it.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
# Outside of the checkout, because linters would follow the links of the chroot.
HOME = Path("/var/cache/pushsvc-swift")
ROOT = HOME / "root"
WORK = HOME / "work"  # /work in the chroot
RELEASE = "trixie"
PACKAGES = ("swiftlang", "libc6-dev", "libstdc++-14-dev")
STUBS = ("Security", "UserNotifications", "UIKit", "SwiftUI")  # each may import those before it
EXAMPLES = {
    "SERVICE": '"https://push.example.com"',
    "CHANNEL": '"00000000-0000-0000-0000-000000000000"',
}

_ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
_ENTER = (
    'mount -t proc proc "$0/proc" && mount --bind "$1" "$0/work" && shift && exec chroot "$0" "$@"'
)


def lack():
    """Why this machine cannot have the chroot; "" if it can."""
    if os.geteuid() != 0:
        return "it needs root"
    for program in ("debootstrap", "apt-get", "unshare"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return ""


@contextmanager
def alone():
    """Waits until no other checkout uses the chroot."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make():
    """Installs the compiler, which needs 4 GB. Safe to repeat, and after an interruption."""
    stamp = ROOT / "complete"
    if stamp.exists():
        return
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    debootstrap = ("debootstrap", "--variant=minbase", RELEASE, str(ROOT), _mirror())
    subprocess.run([*_ALONE, *debootstrap], check=True, stdout=subprocess.DEVNULL)
    (ROOT / "work").mkdir()
    WORK.mkdir(parents=True, exist_ok=True)
    install = ("apt-get", "install", "-qq", "--no-install-recommends", *PACKAGES)
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command(*install, **environment), check=True, stdout=subprocess.DEVNULL)
    stamp.touch()


def _mirror():
    """The first address from which apt gets Debian itself."""
    ask = ("apt-get", "indextargets", "--format", "$(REPO_URI)")
    found = subprocess.run([*ask, "Label: Debian"], capture_output=True, text=True).stdout.split()
    if not found:
        sys.exit("apt is not set up for Debian (or apt-get update never ran)")
    return found[0]


def command(*words, **environment):
    """The command line that runs these words in the chroot, in its folder /work."""
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    settings = {"PATH": path, "HOME": "/work/home", "LC_ALL": "C.UTF-8"} | environment
    words = ("env", "-i", *(f"{name}={value}" for name, value in settings.items()), *words)
    return [*_ALONE, "sh", "-ec", _ENTER, str(ROOT), str(WORK), *words]


def build():
    """Compiles the kit as it is, and again with the stubs for Apple's libraries, the app and the
    extension of the guide. Their service and channel come from the environment."""
    for name in ("home", "run"):
        (WORK / name).mkdir(parents=True, exist_ok=True)
    _copy(CHECKOUT / "clients" / "ios", "kit")
    _copy(HERE / "programs", "programs")
    _copy(HERE / "stubs", "stubs")
    for name, text in code_of_the_guides().items():
        path = WORK / "programs" / "Sources" / name
        path.parent.mkdir(exist_ok=True)
        for name, value in EXAMPLES.items():
            text = text.replace(value, f'ProcessInfo.processInfo.environment["{name}"]!')
        path.write_text(text)
    strict = _flags("-swift-version", "6", "-warnings-as-errors")
    _run("swift", "build", "--package-path", "kit", "--scratch-path", "build/kit", *strict)
    _compile_stubs()
    with_stubs = _flags("-I/work/build/stubs", "-L/work/build/stubs", "-warnings-as-errors")
    rpath = ("-Xlinker", "-rpath", "-Xlinker", "/work/build/stubs")
    options = ("--package-path", "programs", "--scratch-path", "build/programs")
    _run("swift", "build", *options, *with_stubs, *rpath)


def code_of_the_guides():
    """The app and the extension of docs/apns.md, and the categories of docs/events.md."""
    app, extension = _blocks("apns.md")
    [categories] = _blocks("events.md")
    return {
        "app/App.swift": app,
        "extension/NotificationService.swift": extension,
        "extension/Categories.swift": f"import UserNotifications\n{_function(categories)}",
    }


def _blocks(name):
    text = (CHECKOUT / "docs" / name).read_text(encoding="utf-8")
    return re.findall(r"```swift\n(.*?)```", text, re.DOTALL)


def _function(lines):
    return f"func registerCategories() {{\n{lines}}}\n"


def _compile_stubs():
    target = WORK / "build" / "stubs"
    target.mkdir(parents=True, exist_ok=True)
    here = ("-I/work/build/stubs", "-L/work/build/stubs")
    for name in STUBS:
        source, library = WORK / "stubs" / f"{name}.swift", target / f"lib{name}.so"
        if library.exists() and library.stat().st_mtime > source.stat().st_mtime:
            continue
        what = ("-module-name", name, "-module-link-name", name, "-emit-module", "-emit-library")
        to = (
            "-emit-module-path",
            f"build/stubs/{name}.swiftmodule",
            "-o",
            f"build/stubs/lib{name}.so",
        )
        _run("swiftc", *what, *here, "-swift-version", "5", *to, f"stubs/{name}.swift")


def _flags(*flags):
    return [word for flag in flags for word in ("-Xswiftc", flag)]


def _run(*words):
    inside = ("sh", "-c", 'cd /work && exec "$@"', "sh", *words)
    done = subprocess.run(command(*inside), capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr


def _copy(source, name):
    """With the files' times, so that only what changed is compiled again."""
    shutil.rmtree(WORK / name, ignore_errors=True)
    shutil.copytree(source, WORK / name)
