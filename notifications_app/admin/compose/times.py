"""When recipients get a send by local time, in words."""

from zoneinfo import ZoneInfo

from notifications_app.sends.dry_run import DryRun
from notifications_app.sends.timed import Release
from pushsvc.common.quantities import duration


def timed_words(found: DryRun, zone: ZoneInfo) -> str:
    """The first and the last moment on the clock of the zone, and the quiet hours. "" for a send
    without either."""
    quiet = found.timing.quiet if found.timing else None
    nobody = f"Nobody {quiet.words} by the recipient\u2019s clock." if quiet else ""
    return " ".join(filter(None, [_moments(found, zone), nobody]))


def _moments(found: DryRun, zone: ZoneInfo) -> str:
    if not found.releases:
        return ""
    first, last = found.releases[0], found.releases[-1]
    if first is last:
        return f"At {_moment(first, zone)}." if found.timing and found.timing.local_at else ""
    later = duration((last.release_at - first.release_at).total_seconds())
    return f"First at {_moment(first, zone)}, last {later} later in {_zone(last)}."


def _moment(release: Release, zone: ZoneInfo) -> str:
    at = release.release_at.astimezone(zone)
    return f"{at:%H:%M} on {at:%A}, {at.day} {at:%B} ({zone.key}), in {_zone(release)}"


def _zone(release: Release) -> str:
    return release.example or "the channel\u2019s time zone"
