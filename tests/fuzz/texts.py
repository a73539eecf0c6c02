"""Random texts, each of which is a template or refused as none."""

import random
import string
import time

from notifications_app.content.placeholders import NotATemplate, parsed

PIECES = (
    *(
        "{{",
        "}}",
        "{%",
        "%}",
        "{",
        "}",
        "|",
        ":",
        "'",
        '"',
        ".",
        "[",
        "]",
        " ",
        "-",
        "\n",
        "5",
        "é",
    ),
    *(
        "name",
        "attributes",
        "vars",
        "default",
        "default: 'x'",
        "upcase",
        "truncate",
        "😀",
        "\u202e",
    ),
)
VALUES = {"attributes": {"name": "Anna"}, "vars": {}, "device": {}}
SLOW_SECONDS = 0.001


def check_texts(count, seed):
    """How many were templates with a placeholder, the seconds of processor time of the slowest,
    and how many were slow. Raises what parsing raises, but for NotATemplate."""
    choose = random.Random(seed)  # noqa: S311 (the same texts each time)
    accepted = slow = 0
    slowest = 0.0
    for _ in range(count):
        text = _text(choose)
        began = time.thread_time()
        accepted += _is_template(text)
        took = time.thread_time() - began
        slow, slowest = slow + (took > SLOW_SECONDS), max(slowest, took)
    return accepted, slowest, slow


def _text(choose):
    return "".join(
        choose.choice(PIECES) if choose.random() < 0.9 else choose.choice(string.printable)
        for _ in range(choose.randrange(40))
    )


def _is_template(text):
    try:
        template = parsed(text)
    except NotATemplate as refused:
        if not 1 <= refused.position <= len(text):
            raise AssertionError(text) from refused
        return False
    template.text(VALUES)
    return bool(template.placeholders)
