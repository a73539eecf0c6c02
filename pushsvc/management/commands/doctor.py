"""`manage.py doctor`: reports what is wrong with the installation."""

import json
import os
import sys
import textwrap
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from typing_extensions import override

from pushsvc.common.findings import Finding, Severity
from pushsvc.ops.doctor import examine

_WIDTH = 100
_INDENT = " " * 8  # below the title


class Command(BaseCommand):
    help = "Reports what is wrong with this installation and what to do. Exits with 1 on an error."
    requires_system_checks = []  # the doctor reports them itself

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--url", default="", help="the public address, to be called from here")
        parser.add_argument(
            "--send",
            action="store_true",
            help="try each stored provider credential with a message that reaches nobody",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        # A name server that does not respond would delay each query by ten seconds or more.
        os.environ.setdefault("RES_OPTIONS", "timeout:2 attempts:1")
        findings = []
        for finding in examine(url=options["url"], call_providers=options["send"]):
            findings.append(finding)
            if not options["json"]:
                self._write(finding)
        is_healthy = all(finding.severity != Severity.ERROR for finding in findings)
        if options["json"]:
            report = {"is_healthy": is_healthy, "findings": [_shown(each) for each in findings]}
            self.stdout.write(json.dumps(report, indent=2))
        if not is_healthy:
            sys.exit(1)

    def _write(self, finding: Finding) -> None:
        shown = _shown(finding)
        label = f"{shown['severity']:<7} {shown['code']}: "
        for start, text in ((label, shown["title"]), (_INDENT, shown["remedy"])):
            if text:
                self.stdout.write(_wrapped(text, start))


def _shown(finding: Finding) -> dict[str, str]:
    quote = f" The response was: {finding.quote}" if finding.quote else ""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "title": finding.title,
        "remedy": f"{finding.remedy}{quote}",
        "section": finding.section,
    }


def _wrapped(text: str, start: str) -> str:
    """Wraps the text. Names such as worker-web are not broken, so that they can be copied."""
    return textwrap.fill(
        text, _WIDTH, initial_indent=start, subsequent_indent=_INDENT, break_on_hyphens=False
    )
