"""Spans of requests, planned windows, batches and flushes, for OpenTelemetry.

If OTEL_EXPORTER_OTLP_ENDPOINT is not set, no package is loaded and nothing is recorded. There are
no spans for single recipients. Attributes are ids, counts and our own names.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from pushsvc.common.trail import Trail


class Span:
    """A span that is not recorded. `trail`: the trail of the spans and log lines inside it."""

    def __init__(self, trail: Trail) -> None:
        self.trail = trail

    def rename(self, name: str) -> None:
        """Changes the name, for a request whose route is known late."""

    def end(self, **attributes: Any) -> None:
        """Call it once."""


def is_on() -> bool:
    return bool(settings.OTEL_EXPORTER_OTLP_ENDPOINT)


def begin(
    name: str,
    trail: Trail,
    *,
    began: int | None = None,
    is_request: bool = False,
    **attributes: Any,
) -> Span:
    """Begins a span as a child of the trail's span. Only requests begin a trace. `began`:
    nanoseconds of Unix time; by default now."""
    if not is_on() or not (is_request or trail.traceparent):
        return Span(trail)
    begun: Span = _sdk().begin(
        name, trail, began=began, is_request=is_request, attributes=attributes
    )
    return begun


@contextmanager
def span(name: str, trail: Trail, **attributes: Any) -> Iterator[Span]:
    begun = begin(name, trail, **attributes)
    try:
        yield begun
    except BaseException as error:
        begun.end(error=type(error).__name__)
        raise
    begun.end()


def load() -> None:
    """Loads the SDK. Call it before a fork, so that processes share memory."""
    if is_on():
        _sdk()


def shut_down() -> None:
    """Sends recorded spans. For processes that end without Python's own exit."""
    if is_on():
        _sdk().shut_down()


def _sdk() -> Any:
    # Imported here, because it loads OpenTelemetry.
    from pushsvc.common.telemetry import sdk

    return sdk
