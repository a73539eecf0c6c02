"""The Kotlin of docs/fcm.md compiles, against what app_stubs/ says of Android and Firebase.

`make swift` runs the Swift of docs/apns.md.
"""

import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

from tests import missing
from tests.clients.generators import CHECKOUT

STUBS = Path(__file__).resolve().parent / "app_stubs"
COMPILER = CHECKOUT / ".venv" / "kotlin"


def lines_of_the_guide():
    text = (CHECKOUT / "docs" / "fcm.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```kotlin\n(.*?)```", text, re.DOTALL))


def compiled(lines, folder):
    """What the compiler says, which is nothing if it finds nothing."""
    (folder / "Push.kt").write_text(lines, encoding="utf-8")
    [library] = COMPILER.glob("kotlin-stdlib-*.jar")
    return subprocess.run(
        [
            *("java", "-cp", f"{COMPILER}/*", "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"),
            *("-no-stdlib", "-no-reflect", "-Werror", "-cp", str(library)),
            *("-d", str(folder / "push.jar"), str(folder / "Push.kt"), str(STUBS)),
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_the_kotlin_of_the_guide_compiles(tmp_path, cache):
    if not COMPILER.exists() or shutil.which("java") is None:
        missing.skip_without("the Kotlin compiler")
    lines = lines_of_the_guide()
    texts = [lines, *(path.read_text() for path in sorted(STUBS.iterdir()))]
    digest = sha256("\0".join(texts).encode()).hexdigest()
    if cache.get("pushsvc/kotlin", "") == digest:
        return  # it compiled in an earlier run, and nothing has changed

    done = compiled(lines, tmp_path)

    assert done.returncode == 0, done.stderr
    cache.set("pushsvc/kotlin", digest)
