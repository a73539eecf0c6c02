"""The base class of all errors that a client may see, and the general errors.

An error has a `status`, a stable `code` (listed in docs/errors.md), a `title` that belongs to the
code, and a `detail` for this occurrence. An error that only one function raises is defined next to
that function. This module imports no HTTP framework, so that services can raise these errors.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar, Final

from django.utils.translation import gettext
from typing_extensions import override

from pushsvc.common.texts import later

# Together these limit a response to 16 KiB, whatever the 64 KiB of input contain.
MAX_ERRORS: Final = 50
_PATH_BYTES: Final = 160
MAX_UNKNOWN: Final = 10  # an object with more unknown names than this is an error as a whole


class PushsvcError(Exception):
    """`detail` must contain no secret and nothing about another channel, because the client gets
    it."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "The service failed"
    detail: str = later("The request failed. The error was logged.")

    def __init__(self, detail: str = "", *, headers: Mapping[str, str] | None = None) -> None:
        self.detail = str(detail or self.detail)
        self.headers = dict(headers or {})
        super().__init__(self.detail)

    def problem(self) -> dict[str, Any]:
        """The body of the response (RFC 9457 section 3.1)."""
        return {
            "type": f"/docs/errors#{self.code}",
            "title": self.title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }


class BadRequest(PushsvcError):
    status = 400
    code = "bad_request"
    title = "The request is malformed"
    detail = later("The request could not be understood.")


@dataclass(frozen=True)
class FieldError:
    """One error of the input. `attr` is a path (`keys.p256dh`), or "" for the whole input."""

    attr: str
    code: str
    detail: str


class Invalid(PushsvcError):
    """Keeps the first MAX_ERRORS errors. `detail` says if there were more."""

    status = 400
    code = "validation_error"
    title = "The input is not valid"

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = list(errors[:MAX_ERRORS])
        super().__init__(_summary(errors))

    @override
    def problem(self) -> dict[str, Any]:
        shown = [{**asdict(error), "attr": _shortened(error.attr)} for error in self.errors]
        return {**super().problem(), "errors": shown}


@contextmanager
def within(name: str) -> Iterator[None]:
    """Puts the name before the paths of errors of the input."""
    try:
        yield
    except Invalid as error:
        error.errors = [
            replace(each, attr=f"{name}.{each.attr}" if each.attr else name)
            for each in error.errors
        ]
        raise


def _summary(errors: Sequence[FieldError]) -> str:
    if len(errors) > MAX_ERRORS:
        return gettext("%(errors)s errors shown; there are more.") % {"errors": MAX_ERRORS}
    if len(errors) != 1:
        return f"{len(errors)} errors; see errors."
    error = errors[0]
    return f"{_shortened(error.attr)}: {error.detail}" if error.attr else error.detail


def _shortened(path: str) -> str:
    """Cuts a path after _PATH_BYTES of JSON, because it may contain names that the client chose."""
    sizes = accumulate(map(_json_bytes, path[: _PATH_BYTES + 1]))
    fitting = sum(size <= _PATH_BYTES for size in sizes)
    return path if fitting == len(path) else f"{path[:fitting]}…"


def _json_bytes(char: str) -> int:
    if not char.isprintable():
        return 6
    return 2 if char in '"\\' else len(char.encode())


class MissingKey(PushsvcError):
    """401 with the challenge that RFC 9110 section 11.6.1 requires."""

    status = 401
    code = "missing_key"
    title = "An API key is needed"
    detail = "Send the header `Authorization: Key <API_KEY>`."

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail, headers={"WWW-Authenticate": "Key"})


class Forbidden(PushsvcError):
    status = 403
    code = "forbidden"
    title = "Not allowed"
    detail = "This request is not allowed."


class MissingScope(Forbidden):
    code = "missing_scope"
    title = "The API key lacks a scope"

    def __init__(self, scope: str = "send") -> None:
        super().__init__(f"This needs a key with the scope `{scope}`.")


class NotFound(PushsvcError):
    status = 404
    code = "not_found"
    title = "Not found"
    detail = "There is nothing at this address."


class MethodNotAllowed(PushsvcError):
    status = 405
    code = "method_not_allowed"
    title = "Method not allowed"
    detail = "This address does not support this method; see the Allow header."


class Conflict(PushsvcError):
    status = 409
    code = "conflict"
    title = "Conflict with the present state"
    detail = later("The present state does not allow this.")


class Outdated(Conflict):
    """The object in a form of the console was changed meanwhile."""

    def __init__(self, *, by: str = "", is_started: bool = False) -> None:
        words = gettext("It was changed after you opened this page.")
        if by:
            words = gettext("It was changed by %(user)s after you opened this page.")
        if is_started:
            words = gettext("It was changed or started after you opened this page.")
        again = gettext("The form shows what you wrote: saving it again replaces what was changed.")
        super().__init__(f"{words % {'user': by}} {again}")


class BodyTooLarge(PushsvcError):
    status = 413
    code = "body_too_large"
    title = "The body is too large"
    detail = "A request body may hold at most 64 KiB, and that of an import 1 MiB."


class UnsupportedMediaType(PushsvcError):
    status = 415
    code = "unsupported_media_type"
    title = "The body is not JSON"
    detail = "Send the body as `Content-Type: application/json`."


class TooManyRequests(PushsvcError):
    """`wait`: the seconds until the same request may succeed."""

    status = 429
    code = "rate_limited"
    title = "Too many requests"

    def __init__(self, wait: float, *, headers: Mapping[str, str] | None = None) -> None:
        seconds = max(1, math.ceil(wait))
        super().__init__(
            gettext("Wait %(seconds)s seconds before the next request of this kind.")
            % {"seconds": seconds},
            headers={"Retry-After": str(seconds), **(headers or {})},
        )


class Unavailable(PushsvcError):
    """503: the request had no effect. It may succeed after `retry_after` seconds."""

    status = 503
    code = "unavailable"
    title = "Not available now"
    detail = later("Try again later.")
    retry_after: ClassVar[int] = 5

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail, headers={"Retry-After": str(self.retry_after)})


class Busy(Unavailable):
    code = "busy"
    title = "Too many requests at once"
    detail = (
        "Too many requests of this kind, or of this account or address, are running or waiting."
        " Nothing was done."
    )
    retry_after = 1


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"
    title = "The database cannot be reached"
    detail = later("Nothing was stored. Try again later.")
