"""The variants of a notification on its page: their results, and what becomes of their test."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext

from notifications_app.admin.compose.tested import test_words
from notifications_app.models import Notification
from notifications_app.pipeline.deciding import DecidedBy
from notifications_app.reporting.details import VariantResult, variant_results
from pushsvc.common.quantities import duration, share
from pushsvc.common.texts import later, localized
from pushsvc.common.timestamps import parse_timestamp


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A row of the table. `texts`: what it replaces of the content, for people. `between`: the
    interval of 95 % of the rate of clicks; None without deliveries."""

    result: VariantResult
    texts: str
    is_winner: bool

    @property
    def shown_share(self) -> float | None:
        return share(self.result.received, self.result.delivered)

    @property
    def clicked_share(self) -> float | None:
        return share(self.result.clicked, self.result.delivered)

    @property
    def between(self) -> tuple[float, float] | None:
        return self.result.interval("clicked") if self.result.delivered else None


def variants_context(notification: Notification) -> dict[str, Any]:
    """The context of variants.html: nothing for a notification without variants."""
    variants = notification.content.variants
    if not variants:
        return {}
    rows = [
        VariantRow(result, _texts(given), number == notification.winner)
        for number, (given, result) in enumerate(
            zip(variants, variant_results(notification), strict=True)
        )
    ]
    decision, winner = notification.decision or {}, notification.winner
    return {
        "variant_rows": rows,
        "is_on_hold": notification.is_deciding and bool(decision),
        "winner_name": "" if winner is None else variants[winner]["name"],
        "decided_at": parse_timestamp(decision["at"]) if decision else None,
        "decided_words": _decided_words(notification),
        **(_test_context(notification.test) if notification.test else {}),
    }


def test_state(notification: Notification) -> str:
    """Changes whenever the test is decided or put on hold; "" before."""
    decision = notification.decision
    return f" {decision['at']}" if decision else ""


def _test_context(test: Mapping[str, Any]) -> dict[str, str]:
    """What is tested, in words."""
    time = duration(test["minutes"] * 60)
    return {"test_time": time, "test_words": test_words(test)}


def _texts(variant: Mapping[str, Any]) -> str:
    texts = (variant.get(name) for name in ("title", "body", "url"))
    return " · ".join(each for each in texts if each)


def _decided_words(notification: Notification) -> str:
    """Why the winner won; "" before the decision."""
    decision, winner = notification.decision, notification.winner
    if decision is None or winner is None:
        return ""
    p_value = decision["p_value"]
    number = gettext("too few for a comparison") if p_value is None else _p_words(p_value)
    return str(_BECAUSE[DecidedBy(decision["by"])]) % {"number": number}


def _p_words(p_value: float) -> str:
    return localized("p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}")


_BECAUSE: Final = {
    DecidedBy.DIFFERENCE: later("because its rate is certainly the highest (%(number)s)"),
    DecidedBy.LEADER: later(
        "because its rate was the highest, though the difference is not certain (%(number)s)"
    ),
    DecidedBy.DEFAULT: later(
        "because no difference is certain (%(number)s), and the send names it for this case"
    ),
    DecidedBy.CHOICE: later("because somebody chose it"),
}
