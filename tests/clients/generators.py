"""Generators of clients, as requirements/clients.in and .ci/clients pin them, and compilers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = CHECKOUT / "docs" / "openapi.yaml"
PROGRAMS = Path(__file__).resolve().parent / "programs"
TOOLS = CHECKOUT / ".venv" / "clients"
PYTHON = TOOLS / "bin" / "python"
NODE = TOOLS / "bin" / "node"
TSC_OPTIONS = ["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck"]


def require_tools():
    if not (TOOLS / "node_modules").exists():
        pytest.skip("the generators of clients are not installed (make clients installs them)")


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


def openapi_python_client(folder):
    options = ["--path", DOCUMENT, "--output-path", "generated", "--meta", "none"]
    said = run("openapi-python-client", "generate", "--fail-on-warning", *options, cwd=folder)
    assert "WARNING" not in said
    return _checked_python(folder, "openapi_python_client.py")


def openapi_generator_for_python(folder):
    _generate(folder, "python", "-o", "package", "--package-name", "generated")
    shutil.move(folder / "package" / "generated", folder / "generated")
    return _checked_python(folder, "openapi_generator.py")


def openapi_generator_for_typescript(folder):
    more = "--additional-properties=importFileExtension=.js"
    _generate(folder, "typescript-fetch", "-o", "generated", more)
    return compiled(folder, "openapi_generator.ts")


def openapi_fetch(folder):
    run("openapi-typescript", DOCUMENT, "-o", "generated.d.ts", cwd=folder)
    (folder / "node_modules").symlink_to(TOOLS / "node_modules")
    return compiled(folder, "openapi_fetch.ts")


def compiled(folder, program):
    """How to run a program of TypeScript, once its types are checked."""
    shutil.copy(PROGRAMS / program, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    run("tsc", *TSC_OPTIONS, program, cwd=folder)
    return NODE, Path(program).with_suffix(".js")


def _checked_python(folder, program):
    """How to run a program of Python, once its types are checked."""
    shutil.copy(PROGRAMS / program, folder)
    packages = ["--python-executable", PYTHON, "--follow-imports", "silent"]
    run(
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        "",
        "--strict",
        *packages,
        program,
        cwd=folder,
    )
    return PYTHON, program


def _generate(folder, language, *options):
    run("openapi-generator-cli", "generate", "-i", DOCUMENT, "-g", language, *options, cwd=folder)
