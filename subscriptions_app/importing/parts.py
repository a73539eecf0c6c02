"""A part of a file in a request: its query parameters, and what became of its rows."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext

from channels_app.models import Channel
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.importing.formats import Format, Read, Reading, rows_read
from subscriptions_app.importing.running import Judged, Summary, imported
from subscriptions_app.importing.values import MAX_TAKEOVER_DAYS, Options, Outcome

MOST_ROWS: Final = 5_000


@dataclass(frozen=True)
class Part:
    """The rows of a part, and the attributes that are not taken."""

    rows: Sequence[Read]
    dropped: Sequence[str]

    @classmethod
    def read(
        cls,
        body: bytes,
        reading: Reading,
        *,
        first_line: int | None = None,
        most: int = MOST_ROWS,
    ) -> "Part":
        """Reads the whole part. Raises Invalid if it cannot be read to its end, or has too many
        rows. `first_line`: see rows_read."""
        dropped: Counter[str] = Counter()
        reads = rows_read(BytesIO(body), reading, dropped, sql.now(), first_line)
        rows = list(islice(reads, most + 1))
        if len(rows) > most:
            raise Invalid(
                [
                    FieldError(
                        "",
                        "too_many",
                        gettext("Send at most %(most)s rows at once.") % {"most": most},
                    )
                ]
            )
        return cls(rows, sorted(dropped))

    def imported(self, channel: Channel, options: Options) -> Sequence[Judged]:
        """Imports the rows."""
        steps = imported(channel=channel, reads=self.rows, options=options)
        return [each for step in steps for each in step]

    def summed_up(self, judged: Sequence[Judged]) -> dict[str, Any]:
        summary = Summary()
        summary.add(judged)
        refusals = [each.as_refusal() for each in judged if each.result.outcome == Outcome.REFUSED]
        return {**summary.outcomes, "refusals": refusals, "attributes_dropped": self.dropped}


def parameters(given: Mapping[str, str]) -> tuple[Reading, Options]:
    """How to read and to import the part. Raises Invalid."""
    errors: list[FieldError] = []
    format_, platform = given.get("format", ""), given.get("platform") or None
    for name, word, kind in (("format", format_, Format), ("platform", platform, Platform)):
        if word is not None and word not in [each.value for each in kind]:
            detail = gettext("Must be one of: %(choices)s.") % {"choices": ", ".join(kind)}
            errors.append(FieldError(name, "not_a_choice", detail))
    is_dry = given.get("dry_run", "false")
    if is_dry not in ("true", "false"):
        errors.append(FieldError("dry_run", "not_a_boolean", gettext("Must be true or false.")))
    days = given.get("takeover_days", "0")
    if not (re.fullmatch("[0-9]{1,2}", days) and int(days) <= MAX_TAKEOVER_DAYS):
        detail = gettext("Must be 0 to %(most)s.") % {"most": MAX_TAKEOVER_DAYS}
        errors.append(FieldError("takeover_days", "out_of_range", detail))
    columns = dict(_column(each, errors) for each in _listed(given.get("columns", "")))
    if errors:
        raise Invalid(errors)
    attributes = given.get("attributes")
    reading = Reading(
        Format(format_),
        columns,
        None if attributes is None else _listed(attributes),
        given.get("tags_from", ""),
        given.get("vapid_public_key") or None,
        Platform(platform) if platform else None,
    )
    return reading, Options(takeover_days=int(days), dry_run=is_dry == "true")


def _column(text: str, errors: list[FieldError]) -> tuple[str, str]:
    theirs, separator, ours = text.rpartition("=")
    if not separator or not theirs:
        detail = gettext("Write the name of the file, = and the name here.")
        errors.append(FieldError("columns", "malformed", detail))
    return theirs, ours.strip()


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
