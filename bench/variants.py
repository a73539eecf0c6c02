"""Compares what variants cost with a plain send: their planning, and the delivery of a test.

`split`: one process of worker-plan plans both kinds for a whole channel, in turn in each round; no
worker delivers. `test`: both kinds go to the same iPhones through one worker process. Half of the
phones are in the test. The rest gets the variant that is chosen as soon as the test has begun.
"""

import time
from typing import Any, Final

from bench.caps import measure_planning
from bench.results import Options, Result
from bench.service import decide
from bench.texts import measure_beside_plain
from bench.work import BODY, TITLE

_LOOK_SECONDS: Final = 0.02
_LIMIT_SECONDS: Final = 60.0


def split(options: Options) -> Result:
    kinds = {"one content": {}, "four variants": {"variants": _variants(4)}}
    return measure_planning(options, kinds, "≤ 1.3")


def test(options: Options) -> Result:
    return measure_beside_plain(
        options,
        lambda: None,
        "a test of two variants",
        "≥ 0.97",
        meanwhile=_choose,
        variants=_variants(2),
        test={"share": 50, "minutes": 60},
    )


def _variants(count: int) -> list[dict[str, Any]]:
    """Texts as long as the common one, so that only their number makes a difference."""
    return [
        {"name": f"v{number}", "title": f"{TITLE[:-1]}{number}", "body": f"{BODY[:-1]}{number}"}
        for number in range(count)
    ]


def _choose(key: str, notification_id: str) -> None:
    until = time.monotonic() + _LIMIT_SECONDS
    while not decide(key, notification_id, "v1"):
        if time.monotonic() > until:
            raise RuntimeError(f"the test has not begun after {_LIMIT_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)
