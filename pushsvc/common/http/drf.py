"""The base of all API views, and the handler that turns errors into `application/problem+json`."""

from collections import deque
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView
from typing_extensions import override

from pushsvc.common import correlation, errors
from pushsvc.common.http import ratelimit
from pushsvc.common.http.strict_json import MalformedJSON
from pushsvc.common.logs import route_of

PROBLEM_TYPE = "application/problem+json"
_WHOLE = api_settings.NON_FIELD_ERRORS_KEY

logger = structlog.stdlib.get_logger(__name__)


class ApiView(APIView):
    # Without a docstring, because the API reference would show it for every view.
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    is_limit_told = True  # in every response; otherwise only in 429
    has_body = True  # for POST, PUT and PATCH; if False, the body is not read
    _standing: ratelimit.Standing | None = None

    def limit(self, request: Request) -> ratelimit.Limit | None:
        """The limit of this request. None: no limit. Counted before the body is parsed."""
        return None

    @override
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Responds 405 for a missing method before it checks anything else."""
        method = (request.method or "").lower()
        if method not in self.http_method_names or not hasattr(self, method):
            raise exceptions.MethodNotAllowed(method)
        super().initial(request, *args, **kwargs)
        if self.has_body and method in {"post", "put", "patch"}:
            _refuse_empty(request)
            _refuse_encoded(request)

    @override
    def check_throttles(self, request: Request) -> None:
        limit = self.limit(request)
        self._standing = None if limit is None else ratelimit.enforce(limit)

    @override
    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        if self._standing is not None and self.is_limit_told:
            for name, value in self._standing.headers.items():
                response.headers.setdefault(name, value)  # a 429 states the limit that was reached
        response.setdefault(
            "Cache-Control", "no-store"
        )  # depends on headers that caches do not consider
        return super().finalize_response(request, response, *args, **kwargs)


def _refuse_empty(request: Request) -> None:
    """Refuses an empty body, which DRF would read as `{}`, whatever its Content-Type."""
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    if not length.isdecimal() or int(length) == 0:
        raise MalformedJSON("The body is empty.")


def _refuse_encoded(request: Request) -> None:
    """Refuses a compressed body. Otherwise it would be reported as broken JSON."""
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in {"", "identity"}:
        raise errors.UnsupportedMediaType(
            "Send the body as it is, not compressed, and without Content-Encoding.",
            headers={"Accept-Encoding": "identity"},
        )


def django_request(request: Request) -> HttpRequest:
    """Django's own request. Only this function reads DRF's private attribute for it."""
    return request._request  # noqa: SLF001


def problem_body(error: errors.PushsvcError) -> dict[str, Any]:
    """The body of the response, with the request id that log lines about the request have."""
    request_id = correlation.current().request_id
    return error.problem() | ({"request_id": request_id} if request_id else {})


def problem_response(error: errors.PushsvcError) -> Response:
    return Response(
        problem_body(error), status=error.status, headers=error.headers, content_type=PROBLEM_TYPE
    )


def problem_handler(exc: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler. Every exception becomes a problem with a documented code."""
    error = as_pushsvc_error(exc)
    response = problem_response(error)
    if error.status >= 500:
        _report(exc, error, context)
        mark_logged(response)
    return response


def log_unavailable(request: HttpRequest, exc: BaseException, error: errors.PushsvcError) -> None:
    """Logs an expected failure in one line."""
    kind = type(exc).__name__
    logger.warning("request.unavailable", code=error.code, route=route_of(request), kind=kind)


def mark_logged(response: HttpResponseBase) -> None:
    """Sets Django's own mark, with which Django does not log the response again."""
    vars(response)["_has_been_logged"] = True


def as_pushsvc_error(exc: BaseException | None) -> errors.PushsvcError:
    """The error that the client sees; a general error if `exc` is not a PushsvcError."""
    match exc:
        case errors.PushsvcError():
            return exc
        case exceptions.ValidationError():
            return errors.Invalid(errors_of(exc))
        case OperationalError() | InterfaceError():
            return errors.DatabaseUnavailable()
        case Http404() | exceptions.NotFound():
            return errors.NotFound()
        case exceptions.MethodNotAllowed():
            return errors.MethodNotAllowed()
        case exceptions.UnsupportedMediaType():
            return errors.UnsupportedMediaType()
        case PermissionDenied() | exceptions.PermissionDenied():
            return errors.Forbidden()
        case exceptions.ParseError():
            return errors.BadRequest()
        case _:
            return errors.PushsvcError()


def errors_of(error: exceptions.ValidationError) -> list[errors.FieldError]:
    """The errors in the nested `detail`, each with its path, those of outer objects first. An error
    of a whole object has the path of the object."""
    found: list[errors.FieldError] = []
    rest: deque[tuple[Any, tuple[str, ...]]] = deque([(error.detail, ())])
    while rest:
        detail, path = rest.popleft()
        if isinstance(detail, exceptions.ErrorDetail):
            found.append(errors.FieldError(".".join(path), str(detail.code), str(detail)))
        elif isinstance(detail, dict):
            names = (
                (each, () if name == _WHOLE else (str(name),)) for name, each in detail.items()
            )
            rest.extend((each, (*path, *name)) for each, name in names)
        else:
            rest.extend((each, path) for each in detail)
    return found


def _report(exc: Exception, error: errors.PushsvcError, context: dict[str, Any]) -> None:
    """Logs an expected failure in one line, and any other failure with its traceback."""
    request = django_request(context["request"])
    if isinstance(error, errors.Unavailable):
        log_unavailable(request, exc, error)
        return
    kind = type(exc).__name__
    route = route_of(request)
    logger.error("request.failed", code=error.code, route=route, kind=kind, exc_info=exc)
    got_request_exception.send(sender=None, request=request)
