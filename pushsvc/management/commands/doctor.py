"""`manage.py doctor`: reports what is wrong with the installation."""

import json
import os
import sys
import textwrap
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand
from typing_extensions import override

from pushsvc.ops.doctor import Finding, examine, is_healthy

_WIDTH = 100
_INDENT = " " * 19  # below the title


class Command(BaseCommand):
    help = "Says what is wrong with this installation and what to do; exits with 1 if it is bad."
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
        # A name server that does not answer would delay each question by ten seconds or more.
        os.environ.setdefault("RES_OPTIONS", "timeout:2 attempts:1")
        findings = []
        for finding in examine(url=options["url"], call_providers=options["send"]):
            findings.append(finding)
            if not options["json"]:
                self._write(finding)
        healthy = is_healthy(findings)
        if options["json"]:
            report = {"is_healthy": healthy, "findings": [asdict(each) for each in findings]}
            self.stdout.write(json.dumps(report, indent=2))
        if not healthy:
            sys.exit(1)

    def _write(self, finding: Finding) -> None:
        label = f"{finding.tone:<5} {finding.subject:<12} "
        for start, text in ((label, finding.title), (_INDENT, finding.remedy)):
            if text:
                self.stdout.write(_wrapped(text, start))


def _wrapped(text: str, start: str) -> str:
    """Wraps the text. Names such as worker-web are not broken, so that they can be copied."""
    return textwrap.fill(
        text, _WIDTH, initial_indent=start, subsequent_indent=_INDENT, break_on_hyphens=False
    )
