"""Compiles clients/android, the Kotlin of docs/ and the phone of the tests, and runs the phone."""

import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from tests import missing

CHECKOUT = Path(__file__).resolve().parent.parent.parent
KIT = CHECKOUT / "clients" / "android"
SOURCES = KIT / "src" / "main" / "kotlin"
PHONE = Path(__file__).resolve().parent / "phone"
GUIDE = CHECKOUT / "docs" / "fcm.md"
INSTALLED = CHECKOUT / ".venv" / "kotlin"
POM = CHECKOUT / ".ci" / "kotlin" / "pom.xml"

# The machine may have little memory, and other tests run beside this.
_JAVA = ["java", "-XX:ActiveProcessorCount=1", "-XX:TieredStopAtLevel=1"]
_COMPILER = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"
# What differs from one app to the next.
_CONSTANTS = {
    '"https://push.example.com"': 'System.getProperty("pushsvc.service")!!',
    '"00000000-0000-0000-0000-000000000000"': 'System.getProperty("pushsvc.channel")!!',
}


def guide_as_program():
    """The Kotlin of docs/fcm.md as one file. The tests name the service and the channel."""
    blocks = re.findall(r"```kotlin\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    text = "\n".join(blocks)
    for constant, value in _CONSTANTS.items():
        assert text.count(constant) == 1, constant
        text = text.replace(constant, value)
    imports = sorted(set(re.findall(r"^import .*$", text, re.MULTILINE)))
    return "\n".join(["package shop", *imports, re.sub(r"^import .*$", "", text, flags=re.M)])


def built(cache):
    """The folder with the compiled classes, kept from an earlier run with the same sources."""
    if not INSTALLED.exists() or shutil.which("java") is None:
        missing.skip_without("the Kotlin compiler")
    folder = Path(cache.mkdir("android"))
    sources = sorted([*SOURCES.rglob("*.kt"), *PHONE.glob("*.kt"), POM, Path(__file__)])
    texts = [guide_as_program(), *(path.read_text(encoding="utf-8") for path in sources)]
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    stamp = folder / "made-of"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(folder)
        folder.mkdir()
        _unpack(folder)
        _compile(folder)
        stamp.write_text(digest)
    return folder


def _unpack(folder):
    """The classes of Google's packages for Android, which are archives with a jar in them."""
    for archive in INSTALLED.glob("*.aar"):
        with zipfile.ZipFile(archive) as files:
            (folder / f"{archive.stem}.jar").write_bytes(files.read("classes.jar"))


def _compile(folder):
    """The kit alone first: it needs nothing but Kotlin's library and Android's classes."""
    [library] = INSTALLED.glob("kotlin-stdlib-[0-9]*.jar")
    [android] = _android()
    _kotlinc(folder / "kit", [library, android], [SOURCES], "-Werror")
    program = folder / "Guide.kt"
    program.write_text(guide_as_program(), encoding="utf-8")
    known = [folder / "kit", android, *_libraries(folder)]
    # Our FirebaseMessaging comes first: it stands in for Google's.
    _kotlinc(
        folder / "app", known, [PHONE / "R.kt", PHONE / "FirebaseMessaging.kt", program], "-Werror"
    )
    _kotlinc(folder / "phone", [folder / "app", *known], [PHONE / "Phone.kt"], "-nowarn")


def _kotlinc(into, known, sources, *options):
    paths = os.pathsep.join(map(str, known))
    command = [*_JAVA, "-Xmx700m", "-cp", f"{INSTALLED}/*", _COMPILER, "-no-stdlib", "-no-reflect"]
    command += ["-jvm-target", "1.8", "-cp", paths, "-d", str(into), *options, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def started(folder, errors):
    """The phone, which reads commands and writes answers. It loads nothing from the network."""
    android = folder / "android"
    android.mkdir(exist_ok=True)
    for jar in INSTALLED.glob("android-all-instrumented-*.jar"):
        if not (android / jar.name).exists():
            (android / jar.name).symlink_to(jar)
    paths = [folder / "phone", folder / "app", folder / "kit", *_libraries(folder), *_android()]
    options = ["-Xmx900m", "-Drobolectric.offline=true", f"-Drobolectric.dependency.dir={android}"]
    command = [*_JAVA, *options, "-cp", os.pathsep.join(map(str, paths))]
    return subprocess.Popen(
        [*command, "org.junit.runner.JUnitCore", "shop.Phone"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=folder,
    )


def _android():
    return INSTALLED.glob("android-all-[0-9]*.jar")


def _libraries(folder):
    """For the app and the tests: neither the compiler nor Android."""
    unlike = re.compile(r"kotlin-(compiler|daemon)|android-all")
    jars = [path for path in sorted(INSTALLED.glob("*.jar")) if not unlike.match(path.name)]
    return [*sorted(folder.glob("*.jar")), *jars]
