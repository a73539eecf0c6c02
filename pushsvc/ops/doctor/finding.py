"""One line of the doctor's report. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """`bad`: something does not work, or data may be lost. `warn`: it works, and should be changed.
    `info`: good to know. `ok`: examined, and nothing is wrong."""

    OK = "ok"
    INFO = "info"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Finding:
    """`subject`: the part of the installation. `title`: what was found, in a sentence without a
    full stop. `remedy`: what it means and what to do; empty if nothing is wrong."""

    subject: str
    tone: Tone
    title: str
    remedy: str = ""


def is_healthy(findings: Iterable[Finding]) -> bool:
    return all(finding.tone != Tone.BAD for finding in findings)
