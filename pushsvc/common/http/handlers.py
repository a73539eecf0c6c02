"""Django's error handlers, for errors outside of the views: unknown paths, wrong hosts, middleware.

The API responds with problems. The console under /admin/ responds with pages (such as
templates/403.html).
"""

import sys

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from pushsvc.common import errors
from pushsvc.common.http.drf import (
    PROBLEM_TYPE,
    as_pushsvc_error,
    log_unavailable,
    mark_logged,
    problem_body,
)


class HostNotAllowed(errors.BadRequest):
    code = "host_not_allowed"
    title = "The host is not ours"
    detail = "The Host header names no host of ALLOWED_HOSTS."


def problem_json(error: errors.PushsvcError) -> HttpResponse:
    return JsonResponse(
        problem_body(error), status=error.status, headers=error.headers, content_type=PROBLEM_TYPE
    )


def refusal(request: HttpRequest, error: errors.PushsvcError) -> HttpResponse:
    """The response of the web process itself, before Django handles the request, and the one if a
    server is away."""
    if not is_console(request):
        return problem_json(error)
    page = render_to_string("console/refused.html", {"error": error})
    return HttpResponse(page, status=error.status, headers=error.headers)


def is_console(request: HttpRequest) -> bool:
    return request.path_info == "/admin" or request.path_info.startswith("/admin/")


def _page(status: int, **context: str) -> HttpResponse:
    """A page for an error. Does not use the request, because reading its body may have failed."""
    return HttpResponse(render_to_string(f"{status}.html", context), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400."""
    if is_console(request):
        return _page(400)
    if isinstance(exception, DisallowedHost):
        return problem_json(HostNotAllowed())
    return problem_json(errors.BadRequest())


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler403."""
    if is_console(request):
        return _page(403, exception=str(exception))
    return problem_json(errors.Forbidden())


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404."""
    if is_console(request):
        return _page(404)
    return problem_json(errors.NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500. Responds 503 if the database was away, or if too much runs at once."""
    exception = sys.exc_info()[1]
    error = as_pushsvc_error(exception)
    if exception is not None and isinstance(error, errors.DatabaseUnavailable | errors.Busy):
        log_unavailable(request, exception, error)
        response = refusal(request, error)
        mark_logged(response)
        return response
    if is_console(request):
        return _page(500)
    return problem_json(errors.PushsvcError())
