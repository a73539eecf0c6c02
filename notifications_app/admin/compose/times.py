"""When recipients get a send by local time, in words."""

from datetime import UTC

from notifications_app.sends.timed import Release, Timed
from pushsvc.common.quantities import duration


def timed_words(found: Timed | None) -> str:
    """The first and the last moment. "" for a send that is not by local time."""
    if found is None:
        return ""
    first, last = found.releases[0], found.releases[-1]
    if first is last:
        return f"At {_moment(first)}."
    later = duration((last.release_at - first.release_at).total_seconds())
    return f"First at {_moment(first)}, last {later} later in {_zone(last)}."


def _moment(release: Release) -> str:
    at = release.release_at.astimezone(UTC)
    return f"{at:%H:%M} UTC on {at:%A}, {at.day} {at:%B}, in {_zone(release)}"


def _zone(release: Release) -> str:
    return release.example or "the channel\u2019s time zone"
