"""`make test-fast` runs the quickest tests that fit into its time."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.quick import chosen

SECONDS = {"a": 1.0, "b": 2.0, "slow.py::c": 30.0, "d": 3.0}


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(0.5, set()), (3, {"a", "b"}), (5.9, {"a", "b"}), (36, {"a", "b", "d", "slow.py::c"})],
)
def test_the_quickest_run_while_their_times_fit(budget, expected):
    assert chosen(SECONDS, SECONDS, budget=budget) == expected


def test_each_process_chooses_the_same_of_tests_that_took_as_long():
    alike = dict.fromkeys("bdacfe", 1.0)

    assert chosen(alike, alike, budget=3.5) == {"a", "b", "c"}


def test_new_tests_and_those_of_changed_files_always_run():
    ids = [*SECONDS, "new"]

    assert chosen(ids, SECONDS, budget=1, changed=["slow.py"]) == {"a", "new", "slow.py::c"}


def test_a_run_in_parallel_records_the_times_for_the_next(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]")
    (tmp_path / "test_some.py").write_text("def test_a(): pass\ndef test_b(): pass")
    first = ran(tmp_path)
    (tmp_path / "test_new.py").write_text("def test_c(): pass")
    second = ran(tmp_path)

    assert "2 passed" in first
    assert "No times are recorded yet" in first
    assert "1 passed" in second
    assert "1 of 3 tests fit into 1 s" in second


def ran(folder):
    """The output of a run without any time for tests that are recorded."""
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "tests.quick"]
    command += ["-n", "2", "--within", "1", "-c", folder / "pytest.ini", folder]
    own = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, env=own, stdout=subprocess.PIPE, text=True, check=True).stdout
