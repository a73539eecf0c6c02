"""Records spans with OpenTelemetry's SDK and sends them to a collector (OTLP over HTTP).

Only `spans` loads this module. The SDK also reads its own settings: see
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
"""

import os
from collections.abc import Mapping
from functools import cache
from threading import Thread
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Span as SdkSpan
from typing_extensions import override

from pushsvc.common.process import is_worker
from pushsvc.common.telemetry.spans import Span
from pushsvc.common.trail import Trail

_SECONDS_AT_END: Final = 2.0


class _Recorded(Span):
    def __init__(self, span: SdkSpan, request_id: str | None) -> None:
        own = span.get_span_context()
        traceparent = f"00-{own.trace_id:032x}-{own.span_id:016x}-{int(own.trace_flags):02x}"
        super().__init__(Trail(request_id, traceparent))
        self._span = span

    @override
    def rename(self, name: str) -> None:
        self._span.update_name(name)

    @override
    def end(self, **attributes: Any) -> None:
        self._span.set_attributes(_named(attributes))
        if attributes.get("error"):
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


def begin(
    name: str, trail: Trail, *, began: int | None, is_request: bool, attributes: Mapping[str, Any]
) -> Span:
    span = (
        _provider(os.getpid())
        .get_tracer("pushsvc")
        .start_span(
            name,
            _context(trail.traceparent),
            SpanKind.SERVER if is_request else SpanKind.INTERNAL,
            _named({"request_id": trail.request_id, **attributes}),
            start_time=began,
            record_exception=False,  # its text may name people
        )
    )
    return _Recorded(span, trail.request_id)


def shut_down() -> None:
    """Sends recorded spans, for _SECONDS_AT_END at most. If the collector is away, the provider
    would delay the end of the process by half a minute."""
    ending = Thread(target=_provider(os.getpid()).shutdown, name="spans", daemon=True)
    ending.start()
    ending.join(_SECONDS_AT_END)


@cache
def _provider(_pid: int) -> TracerProvider:
    """The provider of this process; its thread does not survive a fork."""
    os.environ.setdefault("OTEL_SERVICE_NAME", "pushsvc")
    provider = TracerProvider(sampler=_sampler(), resource=Resource.create())
    address = f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
    return provider


def _sampler() -> Sampler:
    """Requests are sampled only by the ratio, independent of the client. Workers record spans of
    sampled requests."""
    ratio = TraceIdRatioBased(settings.OTEL_TRACES_SAMPLER_ARG)
    return ParentBased(ratio) if is_worker() else ratio


def _context(traceparent: str | None) -> Any:
    if traceparent is None:
        return None
    _, trace_id, span_id, flags = (int(part, 16) for part in traceparent.split("-"))
    parent = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return set_span_in_context(NonRecordingSpan(parent))


def _named(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Adds a prefix to our own names. Names with a dot are OpenTelemetry's."""
    given = {name: value for name, value in attributes.items() if value is not None}
    return {
        name if "." in name else f"pushsvc.{name}": str(value) if isinstance(value, UUID) else value
        for name, value in given.items()
    }
