"""SECURITY.md names an existing test for each bound."""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def tables():
    """(heading, row) of the tables whose last column names tests."""
    heading = ""
    for line in (CHECKOUT / "SECURITY.md").read_text(encoding="utf-8").splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        if line.startswith("| ") and not line.endswith("| test |"):
            yield heading, line


def test_both_tables_are_found():
    assert {heading for heading, _ in tables()} == {"Threats", "Abuse budget"}


@pytest.mark.parametrize("row", [row for _, row in tables()], ids=lambda row: row[2:60])
def test_every_bound_names_existing_tests(row):
    _, _, bound, tests, _ = re.split(r" ?(?<!\\)\| ?", row)

    named = re.findall(r"`([^`]+)`", tests)
    assert bound
    assert named
    assert [path for path in named if not (CHECKOUT / path).exists()] == []
