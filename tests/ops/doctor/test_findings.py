"""The registry of findings: the runbook lists them, and each report gives the words it needs."""

import ast
import re
from inspect import signature
from string import Formatter

from django.utils.text import slugify

from pushsvc.common.findings import Kind
from tests.ops.helpers import CHECKOUT

RUNBOOK = (CHECKOUT / "docs" / "runbook.md").read_text()
PACKAGES = ("pushsvc", "channels_app", "notifications_app")


def shown(kind):
    return re.sub(r"{(\w+)[^}]*}", r"*\1*", kind.title)


def test_the_runbook_lists_every_finding_with_its_section():
    headings = re.findall(r"^## (.+)$", RUNBOOK, re.M)
    sections = {slugify(heading): f"[{heading}](#{slugify(heading)})" for heading in headings}
    sections["findings"] = ""
    rows = [
        f"| `{kind.code}` | {kind.severity} | {shown(kind)} | {sections[kind.section]}".rstrip()
        for kind in Kind
    ]

    table = RUNBOOK.partition("\n## Findings\n")[2].partition("|---|---|---|---|\n")[2]
    assert [row.removesuffix(" |") for row in table.splitlines()] == rows


def _reports():
    """The kinds that the code reports, with the names of the words that it gives."""
    for package in PACKAGES:
        for file in (CHECKOUT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.Call(ast.Attribute(ast.Attribute(ast.Name("Kind"), name), "found")):
                        yield Kind[name], {keyword.arg for keyword in node.keywords}


def test_every_finding_is_reported_with_the_words_of_its_texts():
    reports = list(_reports())
    assert {kind for kind, _ in reports} == set(Kind)
    for kind, given in reports:
        texts = Formatter().parse(f"{kind.title} {kind.remedy}")
        needed = {name for _, name, _, _ in texts if name}
        own = given - signature(Kind.found).parameters.keys()
        assert own <= needed | {None}, kind
        assert needed <= own or None in own, kind  # None: a dictionary that is not shown here
