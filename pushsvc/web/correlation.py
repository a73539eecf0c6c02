"""Gives every request correlation ids, and every response its `X-Request-ID`."""

import re
from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from pushsvc.common import correlation
from pushsvc.common.ids import uuid7
from pushsvc.common.logs import route_of
from pushsvc.common.telemetry import spans
from pushsvc.web.measuring import known_method

_PUBLIC: Final = re.compile(rf"{settings.CORS_URLS_REGEX}|^/c/")
_GetResponse = Callable[[HttpRequest], HttpResponseBase]


class CorrelationMiddleware:
    """Must be the first middleware, so that every log line about the request has its id."""

    def __init__(self, get_response: _GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = _given_id(request) or str(uuid7())
        given = correlation.Correlation(request_id, _given_traceparent(request))
        span = spans.begin("request", given, is_request=True)
        with correlation.following(span.correlation):
            response = self._get_response(request)
        response.headers["X-Request-ID"] = request_id
        _end(span, request, response)
        return response


def _end(span: spans.Span, request: HttpRequest, response: HttpResponseBase) -> None:
    """Ends the span of the request. It does not contain the path, which may have a token."""
    route, method = route_of(request), known_method(request.method)
    span.rename(f"{method} {route}")
    about = {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": response.status_code,
    }
    span.end(**about, error="request.failed" if response.status_code == 500 else None)


def _given_traceparent(request: HttpRequest) -> str | None:
    """The trace of a program that calls with an API key. Pages, devices and strangers cannot choose
    traces, because they could put their requests into another's."""
    is_keyed = "HTTP_AUTHORIZATION" in request.META
    if not is_keyed or _PUBLIC.match(request.path_info):
        return None
    return correlation.parse_traceparent(request.META.get("HTTP_TRACEPARENT", ""))


def _given_id(request: HttpRequest) -> str | None:
    """The id that a trusted proxy gave the request. Clients cannot choose ids, because they could
    make their log lines look like another client's."""
    if not settings.TRUSTED_PROXIES:
        return None
    return correlation.parse_request_id(request.META.get("HTTP_X_REQUEST_ID", ""))
