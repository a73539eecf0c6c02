"""The last line of `make test` says that programs are missing, if tests were skipped for it."""

import subprocess
import sys

import pytest

from tests.ops.helpers import CHECKOUT

TESTS = """
import pytest
from tests import missing

@pytest.mark.parametrize("_", range(3))
def test_of_a_program(_):
    {skip}

@pytest.mark.skip(reason="needs root")
def test_of_root():
    pass

def test_of_nothing():
    pass
"""
SENTENCE = (
    "3 tests were skipped because programs are missing: run `make programs` (as root, on Debian)."
)


def lines(folder, skip, *options):
    """The last two lines of a run of pytest."""
    (folder / "test_it.py").write_text(TESTS.format(skip=skip))
    command = ["-m", "pytest", "-c", "pyproject.toml", "--rootdir", folder, folder, *options]
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-2:]


@pytest.mark.parametrize("processes", ["0", "2"])
def test_the_last_line_names_the_command_that_installs_them(tmp_path, processes):
    closing, last = lines(tmp_path, "missing.skip_without('nginx')", "-n", processes)

    assert "1 passed, 4 skipped in " in closing
    assert last == SENTENCE


def test_a_run_that_misses_no_program_ends_with_pytests_closing_line(tmp_path):
    _, last = lines(tmp_path, "pass", "-n", "0")

    assert "4 passed, 1 skipped in " in last
