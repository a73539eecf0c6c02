"""SECURITY.md names a test for each bound, and the test is there."""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def tables():
    """(heading, row) of the tables that end with a test."""
    heading = ""
    for line in (CHECKOUT / "SECURITY.md").read_text(encoding="utf-8").splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        if line.startswith("| ") and not line.endswith("| test |"):
            yield heading, line


def test_both_tables_are_found():
    assert {heading for heading, _ in tables()} == {"Threats", "Abuse budget"}


@pytest.mark.parametrize("row", [row for _, row in tables()], ids=lambda row: row[2:60])
def test_every_bound_names_tests_that_are_there(row):
    _, _, bound, tests, _ = re.split(r" ?(?<!\\)\| ?", row)

    named = re.findall(r"`([^`]+)`", tests)
    assert bound
    assert named
    assert [path for path in named if not (CHECKOUT / path).exists()] == []
