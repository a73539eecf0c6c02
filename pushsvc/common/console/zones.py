"""The time zone of a reader of the console: the one that the reader chose, or the browser's.

Both are cookies, because lists and figures need the zone before a script runs.
"""

from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from pushsvc.common.timestamps import timezone_names

CHOSEN: Final = "time-zone"
BROWSERS: Final = "browser-time-zone"  # written by times.js
_DAYS: Final = 365


def reader_zone(request: HttpRequest) -> ZoneInfo:
    """UTC until the browser has said its zone."""
    return ZoneInfo(chosen_zone(request) or _known(request.COOKIES.get(BROWSERS, "")) or "UTC")


def chosen_zone(request: HttpRequest) -> str:
    """ "" if the reader follows the browser."""
    return _known(request.COOKIES.get(CHOSEN, ""))


def choose_zone(response: HttpResponseBase, name: str) -> None:
    """Keeps the zone for this browser; "" and unknown names follow the browser's again."""
    if not _known(name):
        response.delete_cookie(CHOSEN, samesite="Lax")
        return
    response.set_cookie(
        CHOSEN,
        name,
        max_age=_DAYS * 86_400,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


class SkippedTime(ValueError):
    """Clocks of the zone never show the time. The message is for the reader."""


def moment_on_clock(local: datetime, zone: ZoneInfo) -> datetime:
    """The moment in UTC at which clocks of the zone show this time, the first of two. Raises
    SkippedTime, and OverflowError if UTC has no such year."""
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        words = gettext(
            "This time does not exist in %(time_zone)s: clocks are put forward that day."
        )
        raise SkippedTime(words % {"time_zone": zone.key})
    return moment


def _known(name: str) -> str:
    return name if name in timezone_names() else ""
