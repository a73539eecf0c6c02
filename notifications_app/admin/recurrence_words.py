"""When a schedule sends, in words of the reader's language."""

from collections.abc import Sequence
from typing import Final

from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext

from notifications_app.recurrence import RECIPIENT, Frequency, Recurrence, Rule, Weekday
from pushsvc.common.console.figures import grouped
from pushsvc.common.texts import later

# Languages with one form for all have the same translation four times.
_ORDINALS: Final = {1: later("%(nth)sst"), 2: later("%(nth)snd"), 3: later("%(nth)srd")}


def recurrence_words(recurs: Recurrence) -> str:
    """Such as "Every week on Monday and Thursday at 09:00"."""
    words = gettext("%(days)s at %(times)s") % {
        "days": _rule_words(recurs.parsed.begun(recurs.starts_on)),
        "times": listed([f"{at:%H:%M}" for at in sorted(recurs.at)]),
    }
    if recurs.ends_on:
        day = date_format(recurs.ends_on, "DAY")
        words = gettext("%(words)s, until %(day)s") % {"words": words, "day": day}
    if recurs.count:
        words = ngettext(
            "%(words)s, %(count)s time", "%(words)s, %(count)s times", recurs.count
        ) % {"words": words, "count": grouped(recurs.count)}
    return words


def clock_words(timezone: str) -> str:
    """Whose clock it is."""
    return gettext("each recipient") if timezone == RECIPIENT else timezone


def listed(words: Sequence[str]) -> str:
    *rest, last = words
    if not rest:
        return last
    return gettext("%(rest)s and %(last)s") % {"rest": gettext(", ").join(rest), "last": last}


def _rule_words(rule: Rule) -> str:
    every = _every(rule.frequency, rule.interval)
    months = listed([str(MONTHS[each]) for each in sorted(rule.months)] or [""])
    days = [_day(each) for each in rule.month_days]
    if rule.frequency == Frequency.YEARLY and months and len(days) == 1 and not rule.weekdays:
        date = gettext("%(day)s of %(months)s") % {"day": days[0], "months": months}
        return f"{every} {_on([date])}"
    parts = [every]
    if days:
        parts.append(_on(days))
    if rule.weekdays:
        parts.append(_weekdays(rule.weekdays, is_further=bool(days)))
    if months:
        parts.append(gettext("in %(months)s") % {"months": months})
    return " ".join(parts)


def _every(frequency: Frequency, interval: int) -> str:
    match frequency:
        case Frequency.DAILY:
            words = ngettext("Every day", "Every %(count)s days", interval)
        case Frequency.WEEKLY:
            words = ngettext("Every week", "Every %(count)s weeks", interval)
        case Frequency.MONTHLY:
            words = ngettext("Every month", "Every %(count)s months", interval)
        case Frequency.YEARLY:
            words = ngettext("Every year", "Every %(count)s years", interval)
    return words % {"count": interval}


def _on(days: Sequence[str]) -> str:
    return gettext("on %(days)s") % {"days": listed(days)}


def _day(day: int) -> str:
    if day > 0:
        return gettext("the %(nth)s") % {"nth": _ordinal(day)}
    if day == -1:
        return gettext("the last day")
    return gettext("the %(nth)s last day") % {"nth": _ordinal(-day)}


def _weekdays(weekdays: Sequence[Weekday], *, is_further: bool) -> str:
    """`is_further`: the days are selected otherwise too."""
    names = {"weekdays": listed([_weekday(each) for each in weekdays])}
    if is_further:
        return gettext("if it is %(weekdays)s") % names
    if weekdays[0].place:
        return _on([names["weekdays"]])
    return gettext("on %(weekdays)s") % names


def _weekday(weekday: Weekday) -> str:
    name = str(WEEKDAYS[weekday.number])
    if weekday.place == 0:
        return name
    if weekday.place == -1:
        return gettext("the last %(weekday)s") % {"weekday": name}
    nth = {"nth": _ordinal(abs(weekday.place)), "weekday": name}
    if weekday.place < 0:
        return gettext("the %(nth)s last %(weekday)s") % nth
    return gettext("the %(nth)s %(weekday)s") % nth


def _ordinal(number: int) -> str:
    is_teen = number in {11, 12, 13}
    words = gettext("%(nth)sth") if is_teen else _ORDINALS.get(number % 10, gettext("%(nth)sth"))
    return str(words) % {"nth": number}
