"""Clients that generators make of docs/openapi.yaml, and programs with them.

requirements/clients.in and .ci/clients pin the generators. What they make is kept in pytest's cache
until something changes of which it is made.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import missing

CHECKOUT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = CHECKOUT / "docs" / "openapi.yaml"
PROGRAMS = Path(__file__).resolve().parent / "programs"
TOOLS = CHECKOUT / ".venv" / "clients"
PYTHON = TOOLS / "bin" / "python"
NODE = TOOLS / "bin" / "node"
GO_MODULES = TOOLS / "go"
GO_AT_LEAST = (1, 23)  # as go.mod of the generated module says
TSC_OPTIONS = ["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck"]
MADE_OF = [
    *[DOCUMENT, Path(__file__), *sorted(PROGRAMS.iterdir())],
    *[CHECKOUT / "requirements" / name for name in ("clients.txt", "dev.txt")],
    *[CHECKOUT / ".ci" / "clients" / name for name in ("package-lock.json", "go.sum", "schema.js")],
    *sorted((CHECKOUT / "clients" / "typescript").iterdir()),
]
# For OpenAPI Generator: {folder: its settings}.
LANGUAGES: dict[str, dict[str, Any]] = {
    "python": {"packageName": "generated"},
    "typescript-fetch": {"additionalProperties": {"importFileExtension": ".js"}},
    "go": {
        "gitHost": "generated.example",
        "gitUserId": "pushsvc",
        "gitRepoId": "client",
        # Go has one namespace for the values of all enums.
        "additionalProperties": {"enumClassPrefix": True},
    },
    "php": {},
}


@dataclass(frozen=True)
class Workshop:
    root: Path

    def kept(self, make: Callable[["Workshop", Path], None]) -> Path:
        """The folder that `make` filled, now or in an earlier run."""
        folder = self.root / make.__name__
        stamp = folder / "made-of"
        if not stamp.exists() or stamp.read_text() != _digest():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            make(self, folder)
            stamp.write_text(_digest())
        return folder


@cache
def _digest() -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in MADE_OF)).hexdigest()


def require_tools():
    if not (TOOLS / "node_modules").exists():
        missing.skip_without("a generator of clients")


def require_go():
    if not shutil.which("go"):
        missing.skip_without("Go")
    version = tuple(map(int, re.findall(r"\d+", _go_says("GOVERSION"))[:2]))
    if version < GO_AT_LEAST:
        pytest.skip("Go is older than 1.23, and the system has no newer one to install")
    if not GO_MODULES.exists():
        missing.skip_without("what Go needs, which was installed after the generators of clients,")


def require_php():
    loads = ["php", "-r", "require 'GuzzleHttp/autoload.php'; mb_strlen('');"]
    if not shutil.which("php") or subprocess.run(loads, capture_output=True).returncode != 0:
        missing.skip_without("PHP with Guzzle and mbstring")


def run(*command, cwd, **environment):
    """What it prints."""
    path = f"{TOOLS / 'bin'}:{TOOLS / 'node_modules' / '.bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={"PATH": path, "HOME": str(cwd), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def go_cache():
    """The user's own: without it Go compiles its standard library again."""
    return _go_says("GOCACHE")


def _go_says(name):
    ask = [shutil.which("go"), "env", name]
    return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()


# --- what is made once ----------------------------------------------------------------------------


def openapi_generator(_workshop, folder):
    """All of its languages by one process: Java starts slowly."""
    names = []
    for language, more in LANGUAGES.items():
        settings = more | {
            "generatorName": language,
            "inputSpec": str(DOCUMENT),
            "outputDir": language,
        }
        names.append(f"{language}.json")
        (folder / names[-1]).write_text(json.dumps(settings))
    run("openapi-generator-cli", "batch", "--fail-fast", *names, cwd=folder)


def openapi_generator_for_python(workshop, folder):
    _copy(workshop.kept(openapi_generator) / "python" / "generated", folder)
    _check_python(folder, "openapi_generator.py")


def openapi_generator_for_typescript(workshop, folder):
    _copy(workshop.kept(openapi_generator) / "typescript-fetch", folder)
    compile_typescript(folder, "openapi_generator.ts")


def openapi_generator_for_go(workshop, folder):
    _copy(workshop.kept(openapi_generator) / "go", folder)
    program = folder / "generated" / "program"
    program.mkdir()
    shutil.copy(PROGRAMS / "openapi_generator.go", program / "main.go")
    modules = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOMODCACHE": str(GO_MODULES)}
    build = ["go", "build", "-o", folder / "program", "./program"]
    run(*build, cwd=folder / "generated", GOCACHE=go_cache(), GOTOOLCHAIN="local", **modules)


def openapi_generator_for_php(workshop, folder):
    _copy(workshop.kept(openapi_generator) / "php", folder)
    shutil.copy(PROGRAMS / "openapi_generator.php", folder)


def openapi_python_client(_workshop, folder):
    # The generator knows the bodies of an import only as files.
    files = dict.fromkeys(["text/csv", "application/x-ndjson"], "application/octet-stream")
    config = folder / "config.json"
    config.write_text(json.dumps({"content_type_overrides": files}))
    options = ["--path", DOCUMENT, "--output-path", "generated", "--meta", "none"]
    options += ["--config", config]
    said = run("openapi-python-client", "generate", "--fail-on-warning", *options, cwd=folder)
    assert "WARNING" not in said
    _check_python(folder, "openapi_python_client.py")


def openapi_fetch(_workshop, folder):
    """With the types that openapi-typescript made for clients/typescript, whose test says that they
    are those of the document."""
    shutil.copy(CHECKOUT / "clients" / "typescript" / "schema.d.ts", folder / "generated.d.ts")
    (folder / "node_modules").symlink_to(TOOLS / "node_modules")
    compile_typescript(folder, "openapi_fetch.ts")


def client_types(_workshop, folder):
    run(CHECKOUT / ".ci" / "client-types", folder, cwd=folder)


def compile_typescript(folder, program):
    shutil.copy(PROGRAMS / program, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    run("tsc", *TSC_OPTIONS, program, cwd=folder)


def _copy(made, folder):
    shutil.copytree(made, folder / "generated")


def _check_python(folder, program):
    shutil.copy(PROGRAMS / program, folder)
    check = [sys.executable, "-m", "mypy", "--config-file", "", "--strict"]
    packages = ["--python-executable", PYTHON, "--follow-imports", "silent"]
    run(*check, *packages, program, cwd=folder)
