"""The Content-Security-Policy of each page: what a browser may load and run (with django-csp).

A page that is not listed here may load nothing. No page has scripts in its HTML. Only the console
may evaluate strings, because Alpine.js in its theme does.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from csp.constants import HEADER, NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.utils import build_policy
from django.http import HttpRequest
from django.http.response import HttpResponseBase

Policy = Mapping[str, list[str]]

ANSWER: Final[Policy] = {
    "default-src": [NONE],
    "base-uri": [NONE],
    "form-action": [NONE],
    "frame-ancestors": [NONE],
}
PAGE: Final[Policy] = {**ANSWER, "img-src": [SELF], "style-src": [SELF]}
# The policy of a service worker: it may import our script, and report events to us.
WORKER: Final[Policy] = {**ANSWER, "connect-src": [SELF], "script-src": [SELF]}
DEMO: Final[Policy] = {**PAGE, **WORKER, "worker-src": [SELF], "manifest-src": [SELF]}
REFERENCE: Final[Policy] = {
    **PAGE,
    "connect-src": [SELF],
    "img-src": [SELF, "data:"],  # the icons of Swagger UI
    "script-src": [SELF],
}
CONSOLE: Final[Policy] = {
    **ANSWER,
    "connect-src": [SELF],
    "font-src": [SELF],
    "form-action": [SELF],
    "img-src": [SELF, "data:", "https:"],  # previews show a notification's icon and image
    "script-src": [SELF, UNSAFE_EVAL],
    "style-src": [SELF, UNSAFE_INLINE],  # the theme's colours, and style attributes
}

# Built in advance, because every answer has a policy, and building one costs more than most
# middleware.
_ANSWER: Final = build_policy(dict(ANSWER))
_CONSOLE: Final = build_policy(dict(CONSOLE))
_DEMO: Final = build_policy(dict(DEMO))
_PAGE: Final = build_policy(dict(PAGE))
_WORKER: Final = build_policy(dict(WORKER))
_BY_PATH: Final[Mapping[str, str]] = {
    "/": _PAGE,
    "/docs": build_policy(dict(REFERENCE)),
    "/demo": _DEMO,
    "/demo/sw.js": _WORKER,
}


def policy_for(path: str) -> str:
    """The policy of a path. It depends only on the path, so an error has the policy of its page."""
    if path == "/admin" or path.startswith("/admin/"):
        return _CONSOLE
    page = path.rstrip("/") or "/"
    if page.startswith("/test-device/"):
        return _WORKER if page.endswith("/sw.js") else _DEMO
    return _PAGE if page.startswith("/docs/") else _BY_PATH.get(page, _ANSWER)


class PolicyMiddleware:
    """Sets the policy. Replaces django-csp's middleware, whose policies may differ per answer."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = self._get_response(request)
        response.headers[HEADER] = policy_for(request.path_info)
        return response
