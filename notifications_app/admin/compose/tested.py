"""The test of a send's variants, in words."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext

from notifications_app.content.values import HOLD, LEADER, TEST_METRICS
from pushsvc.common.quantities import duration
from pushsvc.common.texts import later

CLICKED, RECEIVED = TEST_METRICS

METRICS: Final[Mapping[str, str]] = {CLICKED: later("clicks"), RECEIVED: later("displays")}
_WITHOUT: Final[Mapping[str, str]] = {
    LEADER: later("If the numbers say nothing, the variant with the highest rate counts."),
    HOLD: later("If the numbers say nothing, the test waits for a choice."),
}


def test_choices(names: Sequence[str], chosen: str) -> dict[str, Any]:
    """The choices of a form. `names`: of the variants. `chosen`: what counts if the numbers say
    nothing. It is offered even if no variant has that name now."""
    known = dict.fromkeys([*names, *([] if chosen in _WITHOUT else [chosen])])
    return {
        "test_metrics": list(METRICS.items()),
        "inconclusive_choices": [
            (LEADER, gettext("the variant with the highest rate")),
            (HOLD, gettext("wait until somebody chooses")),
            *((name, name) for name in known if name),
        ],
    }


def test_words(test: Mapping[str, Any]) -> str:
    """What happens to a send with this test, for people."""
    words = gettext(
        "%(share)s %% of the audience get one of the variants at once, and the rest the better one "
        "after %(time)s, by %(metric)s."
    ) % {
        "share": test["share"],
        "time": duration(test["minutes"] * 60),
        "metric": METRICS[test["metric"]],
    }
    return f"{words} {_without_difference(test['inconclusive'])}"


def _without_difference(inconclusive: str) -> str:
    if inconclusive in _WITHOUT:
        return str(_WITHOUT[inconclusive])
    return gettext("If the numbers say nothing, it is “%(name)s”.") % {"name": inconclusive}
