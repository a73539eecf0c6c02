"""Counts requests by route, for /metrics.

A route is a pattern of the URL configuration, so clients cannot create new ones. All pages of the
console count as one route.
"""

import time
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from pushsvc.common import metrics
from pushsvc.common.logs import route_of

# In a WSGI environment: when the request was complete, on the monotonic clock. After that it may
# have waited for a thread.
ARRIVED: Final = "pushsvc.arrived"
_NO_ROUTE: Final = "none"
_CONSOLE: Final = "admin/"
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


class MeasuringMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        arrived = request.META.get(ARRIVED) or time.monotonic()
        response = self._get_response(request)
        route, method = _known_route(request), known_method(request.method)
        metrics.REQUEST_SECONDS.observe(time.monotonic() - arrived, route)
        metrics.REQUESTS.add(1, route, method, f"{response.status_code // 100}xx")
        return response


def _known_route(request: HttpRequest) -> str:
    route = route_of(request)
    return _CONSOLE if route.startswith(_CONSOLE) else route or _NO_ROUTE


def known_method(method: str | None) -> str:
    """The method, or one word for all methods that clients invent."""
    return method if method in _METHODS else metrics.OTHER
