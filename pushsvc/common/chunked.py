"""Request bodies without a Content-Length (RFC 9112 section 7.1), which Django takes for empty."""

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from pushsvc.common.strict_json import MAX_BODY_BYTES

_Environ = dict[str, Any]
_Application = Callable[[_Environ, Any], Iterable[bytes]]


def read_chunked(application: _Application) -> _Application:
    """Wraps a WSGI application whose server ends `wsgi.input` where a chunked body ends.

    One byte more than a body may hold is read at most, so that a larger one is refused as such.
    """

    def with_length(environ: _Environ, start_response: Any) -> Iterable[bytes]:
        if _is_chunked(environ):
            body = environ["wsgi.input"].read(MAX_BODY_BYTES + 1)
            environ["wsgi.input"] = BytesIO(body)
            environ["CONTENT_LENGTH"] = str(len(body))
        return application(environ, start_response)

    return with_length


def _is_chunked(environ: _Environ) -> bool:
    """RFC 9112 section 6.3: Transfer-Encoding overrides Content-Length."""
    is_terminated = environ.get("wsgi.input_terminated", False)
    return is_terminated and "HTTP_TRANSFER_ENCODING" in environ
