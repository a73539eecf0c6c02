"""docs/threats.md and docs/limits.md name an existing test for each bound, docs/reliability.md for
each error."""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def bounds(page):
    """The rows of the tables whose last column names tests."""
    lines = (CHECKOUT / "docs" / page).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and not line.endswith("| test |")]


THREATS, LIMITS = bounds("threats.md"), bounds("limits.md")


def test_both_tables_are_found():
    assert len(THREATS) > 50
    assert len(LIMITS) > 50


@pytest.mark.parametrize("row", THREATS + LIMITS, ids=lambda row: row[2:60])
def test_every_bound_names_existing_tests(row):
    _, _, bound, tests, _ = re.split(r" ?(?<!\\)\| ?", row)

    named = re.findall(r"`([^`]+)`", tests)
    assert bound
    assert named
    assert [path for path in named if not (CHECKOUT / path).exists()] == []


def faults():
    """The rows of the table whose last column names tests, most of them in tests/faults/."""
    text = (CHECKOUT / "docs" / "reliability.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| fault | what must hold | test |\n|---|---|---|\n")
    rows, _, _ = table.partition("\n\n")
    return rows.splitlines()


@pytest.mark.parametrize("row", faults(), ids=lambda row: row[2:60])
def test_every_fault_names_existing_tests(row):
    """A test by its file, or by a part of its name."""
    _, _, _, tests, _ = row.split("|")
    folder = CHECKOUT / "tests" / "faults"
    files = {str(path.relative_to(CHECKOUT)) for path in CHECKOUT.glob("tests/**/test_*.py")}
    files |= {path.name for path in folder.glob("test_*.py")}
    functions = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("test_*.py"))

    named = re.findall(r"`([^`]+)`", tests)
    assert named
    for name in named:
        part = re.escape(name.strip("…"))
        assert name in files or re.search(rf"^def test_\w*{part}", functions, re.MULTILINE), name
