"""Compares the cost of a send with texts in six languages with that of a plain send.

Both go to the same iPhones through one worker process, in turn in each round. Each of five
translated languages belongs to a sixth of the phones, and another language to a sixth. iOS has the
least other work for a message, so that the cost of texts shows most.
"""

from typing import Any, Final

from bench.results import Options, Result
from bench.texts import measure_beside_plain
from bench.work import BODY, TITLE

_LANGUAGES: Final = ("de", "fr", "es", "it", "pt-BR")  # in addition to the common text
_SPOKEN: Final = ("de-AT", "fr", "es-419", "it", "pt-BR", "ja")
_TRANSLATIONS: Final[dict[str, Any]] = {
    tag: {"title": f"{TITLE} {tag}", "body": BODY[: -len(tag)] + tag} for tag in _LANGUAGES
}


def measure(options: Options) -> Result:
    return measure_beside_plain(
        options, _speak, "texts in six languages", "≥ 0.97", translations=_TRANSLATIONS
    )


def _speak() -> None:
    """Gives each subscription a language, in turn."""
    from subscriptions_app.models import Subscription

    rows = list(Subscription.objects.order_by("id"))
    for number, row in enumerate(rows):
        row.language = _SPOKEN[number % len(_SPOKEN)]
    Subscription.objects.bulk_update(rows, ["language"], batch_size=1_000)
