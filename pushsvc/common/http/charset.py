"""Everything is read as UTF-8, whatever `charset` a request names.

Django would decode form fields and query strings by it, and Python has charsets that are none:
`zlib`, `undefined`, `idna`. Whoever named one got a 500.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse


def charset_middleware(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    def middleware(request: HttpRequest) -> HttpResponse:
        request.encoding = settings.DEFAULT_CHARSET
        return get_response(request)

    return middleware
