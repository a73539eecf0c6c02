"""The Content-Security-Policy of each page: what a browser may load and run.

A page that is not listed here may load nothing. No page has scripts in its HTML. Only the console
may evaluate strings, because Alpine.js in its theme does.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

HEADER: Final = "Content-Security-Policy"
NONE: Final = "'none'"
SELF: Final = "'self'"

Policy = Mapping[str, str]

RESPONSE: Final[Policy] = {
    "default-src": NONE,
    "base-uri": NONE,
    "form-action": NONE,
    "frame-ancestors": NONE,
}
PAGE: Final[Policy] = {**RESPONSE, "img-src": SELF, "style-src": SELF}
# The policy of a service worker: it may import our script, and report events to us.
WORKER: Final[Policy] = {**RESPONSE, "connect-src": SELF, "script-src": SELF}
DEMO: Final[Policy] = {**PAGE, **WORKER, "worker-src": SELF, "manifest-src": SELF}
REFERENCE: Final[Policy] = {
    **PAGE,
    "connect-src": SELF,
    "img-src": "'self' data:",  # the icons of Swagger UI
    "script-src": SELF,
}
CONSOLE: Final[Policy] = {
    **RESPONSE,
    "connect-src": SELF,
    "font-src": SELF,
    "form-action": SELF,
    "img-src": "'self' data: https:",  # previews show a notification's icon and image
    "script-src": "'self' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",  # the theme's colours, and style attributes
}

_BY_PATH: Final[Mapping[str, Policy]] = {
    "/": PAGE,
    "/docs": REFERENCE,
    "/demo": DEMO,
    "/demo/sw.js": WORKER,
}


def policy_for(path: str) -> str:
    """The policy of a path. It depends only on the path, so an error has the policy of its page."""
    return "; ".join(f"{directive} {sources}" for directive, sources in _policy(path).items())


def _policy(path: str) -> Policy:
    if path == "/admin" or path.startswith("/admin/"):
        return CONSOLE
    page = path.rstrip("/") or "/"
    if page.startswith("/test-device/"):
        return WORKER if page.endswith("/sw.js") else DEMO
    return PAGE if page.startswith("/docs/") else _BY_PATH.get(page, RESPONSE)


class PolicyMiddleware:
    """Sets the policy of the path."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = self._get_response(request)
        response.headers[HEADER] = policy_for(request.path_info)
        return response
