"""The Content-Security-Policy of each page: what a browser may load and run (by django-csp).

A page that is not listed here may load nothing. No page has scripts in its HTML. Only the console
may evaluate strings, because its theme uses Alpine.js, which does.
"""

from collections.abc import Mapping
from typing import Any, Final

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from typing_extensions import override

Policy = Mapping[str, list[str]]

ANSWER: Final[Policy] = {
    "default-src": [NONE],
    "base-uri": [NONE],
    "form-action": [NONE],
    "frame-ancestors": [NONE],
}
PAGE: Final[Policy] = {**ANSWER, "img-src": [SELF], "style-src": [SELF]}
# The policy of a worker: import our script, and report events to us.
WORKER: Final[Policy] = {**ANSWER, "connect-src": [SELF], "script-src": [SELF]}
DEMO: Final[Policy] = {**PAGE, **WORKER, "worker-src": [SELF], "manifest-src": [SELF]}
REFERENCE: Final[Policy] = {
    **PAGE,
    "connect-src": [SELF],
    "img-src": [SELF, "data:"],
    "script-src": [SELF],
    "style-src": [SELF, UNSAFE_INLINE],  # Swagger UI writes style elements
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

_BY_PATH: Final[Mapping[str, Policy]] = {
    "/": PAGE,
    "/docs": REFERENCE,
    "/demo": DEMO,
    "/demo/sw.js": WORKER,
}


def policy_for(path: str) -> Policy:
    """Depends on the path only, so that an error has the policy of its page."""
    if path == "/admin" or path.startswith("/admin/"):
        return CONSOLE
    page = path.rstrip("/") or "/"
    return PAGE if page.startswith("/docs/") else _BY_PATH.get(page, ANSWER)


class PolicyMiddleware(CSPMiddleware):
    @override
    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if not report_only and parts.config is None:
            config: dict[str, Any] = dict(policy_for(request.path_info))
            parts.config = config
        return parts
