"""The language of a reader of the console: the one that the reader chose, or the browser's.

The choice is a cookie, like that of the time zone (zones.py). Mails are in the language that the
console had when the reader signed in, or that the reader chose since. Everything else outside of
the console, such as the API and its errors, is English for everybody.
"""

from typing import Final

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import get_language_from_request

_DAYS: Final = 365


def reader_language(request: HttpRequest) -> str:
    """The code of one of LANGUAGES. English for a browser that prefers none of them."""
    return get_language_from_request(request)


def chosen_language(request: HttpRequest) -> str:
    """ "" if the reader follows the browser."""
    return _known(request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, ""))


def choose_language(request: HttpRequest, response: HttpResponseBase, code: str) -> str:
    """Keeps the language for this browser; "" and unknown codes follow the browser's again.
    Returns the language of the reader's next pages."""
    if not _known(code):
        response.delete_cookie(settings.LANGUAGE_COOKIE_NAME, samesite="Lax")
        request.COOKIES.pop(settings.LANGUAGE_COOKIE_NAME, None)
        return reader_language(request)
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        code,
        max_age=_DAYS * 86_400,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return code


def _known(code: str) -> str:
    return code if code in dict(settings.LANGUAGES) else ""
