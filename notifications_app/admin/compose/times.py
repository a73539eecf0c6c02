"""When recipients get a send by local time, in words."""

from datetime import UTC

from notifications_app.sends.dry_run import DryRun
from notifications_app.sends.timed import Release
from pushsvc.common.quantities import duration


def timed_words(found: DryRun) -> str:
    """The first and the last moment, and the quiet hours. "" for a send without either."""
    quiet = found.timing.quiet if found.timing else None
    nobody = f"Nobody {quiet.words} by the recipient\u2019s clock." if quiet else ""
    return " ".join(filter(None, [_moments(found), nobody]))


def _moments(found: DryRun) -> str:
    if not found.releases:
        return ""
    first, last = found.releases[0], found.releases[-1]
    if first is last:
        return f"At {_moment(first)}." if found.timing and found.timing.local_at else ""
    later = duration((last.release_at - first.release_at).total_seconds())
    return f"First at {_moment(first)}, last {later} later in {_zone(last)}."


def _moment(release: Release) -> str:
    at = release.release_at.astimezone(UTC)
    return f"{at:%H:%M} UTC on {at:%A}, {at.day} {at:%B}, in {_zone(release)}"


def _zone(release: Release) -> str:
    return release.example or "the channel\u2019s time zone"
