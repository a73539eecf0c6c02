"""Spans of requests, planned windows, batches and flushes, for OpenTelemetry.

If OTEL_EXPORTER_OTLP_ENDPOINT is not set, no package is loaded and nothing is recorded. There are
no spans for single recipients. Attributes are ids, counts and our own names.

The SDK sends spans to a collector (OTLP over HTTP). It also reads its own settings: see
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings

from pushsvc.common.correlation import Correlation
from pushsvc.common.process import is_worker

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as RecordedSpan

_SECONDS_AT_END: Final = 2.0
_LOADED: Final = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk.trace.export",
    "opentelemetry.trace.propagation.tracecontext",
)


class Span:
    """`correlation`: the ids of the spans and log lines inside it. Without `recorded`, the SDK's
    span, it is not recorded."""

    def __init__(self, correlation: Correlation, recorded: "RecordedSpan | None" = None) -> None:
        self.correlation = correlation
        self._recorded = recorded

    def rename(self, name: str) -> None:
        """Changes the name, for a request whose route is known late."""
        if self._recorded is not None:
            self._recorded.update_name(name)

    def end(self, **attributes: Any) -> None:
        """Call it once."""
        if self._recorded is None:
            return
        from opentelemetry.trace import StatusCode

        self._recorded.set_attributes(_named(attributes))
        if attributes.get("error"):
            self._recorded.set_status(StatusCode.ERROR)
        self._recorded.end()


def is_on() -> bool:
    return bool(settings.OTEL_EXPORTER_OTLP_ENDPOINT)


def begin(
    name: str,
    correlation: Correlation,
    *,
    began: int | None = None,
    is_request: bool = False,
    **attributes: Any,
) -> Span:
    """Begins a span as a child of the span that `correlation` names. Only requests begin a trace.
    `began`: nanoseconds of Unix time; by default now."""
    if not is_on() or not (is_request or correlation.traceparent):
        return Span(correlation)
    from opentelemetry.trace import SpanKind, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    w3c = TraceContextTextMapPropagator()
    recorded = (
        _provider(os.getpid())
        .get_tracer("pushsvc")
        .start_span(
            name,
            w3c.extract({"traceparent": correlation.traceparent or ""}),
            SpanKind.SERVER if is_request else SpanKind.INTERNAL,
            _named({"request_id": correlation.request_id, **attributes}),
            start_time=began,
            record_exception=False,  # its text may name people
        )
    )
    headers: dict[str, str] = {}
    w3c.inject(headers, set_span_in_context(recorded))
    return Span(Correlation(correlation.request_id, headers["traceparent"]), recorded)


@contextmanager
def span(name: str, correlation: Correlation, **attributes: Any) -> Iterator[Span]:
    begun = begin(name, correlation, **attributes)
    try:
        yield begun
    except BaseException as error:
        begun.end(error=type(error).__name__)
        raise
    begun.end()


def load() -> None:
    """Loads the SDK. Call it before a fork, so that processes share memory."""
    if is_on():
        for name in _LOADED:
            import_module(name)


def shut_down() -> None:
    """Sends recorded spans, for _SECONDS_AT_END at most; if the collector is away, the provider
    would delay the end by half a minute. For processes that end without Python's own exit."""
    if is_on():
        ending = Thread(target=_provider(os.getpid()).shutdown, name="spans", daemon=True)
        ending.start()
        ending.join(_SECONDS_AT_END)


@cache
def _provider(_pid: int) -> "TracerProvider":
    """The provider of this process; its thread does not survive a fork.

    Requests are sampled only by the ratio, independent of the client. Workers record spans of
    sampled requests.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    os.environ.setdefault("OTEL_SERVICE_NAME", "pushsvc")
    ratio = TraceIdRatioBased(settings.OTEL_TRACES_SAMPLER_ARG)
    sampler = ParentBased(ratio) if is_worker() else ratio
    provider = TracerProvider(sampler=sampler, resource=Resource.create())
    address = f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
    return provider


def _named(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Adds a prefix to our own names. Names with a dot are OpenTelemetry's."""
    given = {name: value for name, value in attributes.items() if value is not None}
    return {
        name if "." in name else f"pushsvc.{name}": str(value) if isinstance(value, UUID) else value
        for name, value in given.items()
    }
