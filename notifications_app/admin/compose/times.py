"""When recipients get a send by local time, in words."""

from zoneinfo import ZoneInfo

from django.utils.formats import date_format
from django.utils.translation import gettext

from notifications_app.sends.dry_run import DryRun
from notifications_app.sends.timed import Release
from pushsvc.common.quantities import duration


def timed_words(found: DryRun, zone: ZoneInfo) -> str:
    """The first and the last moment on the clock of the zone, and the quiet hours. "" for a send
    without either."""
    quiet = found.timing.quiet if found.timing else None
    nobody = ""
    if quiet:
        words = gettext("Nobody between %(begin)s and %(end)s by the recipient\u2019s clock.")
        nobody = words % {"begin": quiet.begin, "end": quiet.end}
    return " ".join(filter(None, [_moments(found, zone), nobody]))


def _moments(found: DryRun, zone: ZoneInfo) -> str:
    if not found.releases:
        return ""
    first, last = found.releases[0], found.releases[-1]
    if first is last:
        words = gettext("At %(first)s.") % {"first": _moment(first, zone)}
        return words if found.timing and found.timing.local_at else ""
    return gettext("First at %(first)s, last %(duration)s later in %(zone)s.") % {
        "first": _moment(first, zone),
        "duration": duration((last.release_at - first.release_at).total_seconds()),
        "zone": _zone(last),
    }


def _moment(release: Release, zone: ZoneInfo) -> str:
    at = release.release_at.astimezone(zone)
    return gettext("%(time)s on %(day)s (%(clock)s), in %(zone)s") % {
        "time": f"{at:%H:%M}",
        "day": date_format(at, "WEEKDAY"),
        "clock": zone.key,
        "zone": _zone(release),
    }


def _zone(release: Release) -> str:
    return release.example or gettext("the channel\u2019s time zone")
