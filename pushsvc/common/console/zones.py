"""The time zone of a reader of the console: the one that the reader chose, or the browser's.

Both are cookies, because lists and figures need the zone before a script runs.
"""

from typing import Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

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


def _known(name: str) -> str:
    return name if name in timezone_names() else ""
