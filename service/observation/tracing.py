"""Traces by OpenTelemetry, where they are asked for: OTEL_EXPORTER_OTLP_ENDPOINT set, and the extra ``tracing`` there.

The SDK reads its own variables (OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS ...). Without an
endpoint nothing of it is imported, and a span costs one function call.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

from engine.version import VERSION
from service.settings import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
INSTALL = "Install the extra where the service runs: pip install 'graphgate[tracing]'."
Attribute = str | int | float | bool


class TracingError(SettingsError):
    """Traces are asked for and cannot be sent."""


class Span(Protocol):
    """The part of a span that is used here."""

    def set_attribute(self, key: str, value: Attribute, /) -> object:
        """Say something about what the span covers; never a secret."""

    def update_name(self, name: str, /) -> object:
        """Name it better, once more is known."""


class _NoSpan:
    def set_attribute(self, key: str, value: Attribute, /) -> None:
        """Nobody listens."""

    def update_name(self, name: str, /) -> None:
        """Nobody listens."""


_NOTHING = nullcontext(_NoSpan())


class Tracing:
    """Spans of one process, sent by OTLP over HTTP; without ``provider``, none."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tracer = None if provider is None else provider.get_tracer("graphgate", VERSION)

    @property
    def on(self) -> bool:
        """Whether spans go anywhere."""
        return self._tracer is not None

    def span(self, name: str, **attributes: Attribute) -> AbstractContextManager[Span]:
        """A span of work inside this process, under the one that is open here."""
        if self._tracer is None:
            return _NOTHING
        return self._tracer.start_as_current_span(name, attributes=attributes)

    def request(self, method: str, headers: Mapping[str, str]) -> AbstractContextManager[Span]:
        """The span of a request, under the caller's own where a ``traceparent`` header names it."""
        if self._tracer is None:
            return _NOTHING
        return self._request(method, headers)

    @contextmanager
    def _request(self, method: str, headers: Mapping[str, str]) -> Iterator[Span]:
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        assert self._tracer is not None  # noqa: S101 - asked by the caller
        parent = TraceContextTextMapPropagator().extract(headers)
        with self._tracer.start_as_current_span(
            method, context=parent, kind=SpanKind.SERVER, attributes={"http.request.method": method}
        ) as span:
            yield span

    def close(self) -> None:
        """Send what is left."""
        if self._provider is not None:
            self._provider.shutdown()


def open_tracing(service: str, environment: Mapping[str, str] | None = None) -> Tracing:
    """Tracing as the environment asks for it; ``service`` is the name where OTEL_SERVICE_NAME gives none.

    Raises:
        TracingError: an endpoint is set and the extra is not installed.
    """
    environment = os.environ if environment is None else environment
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or not any(map(environment.get, ENDPOINTS)):
        return Tracing()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        raise TracingError(f"{ENDPOINTS[1]} is set, and traces cannot be sent: {missing}. {INSTALL}") from missing
    named = {} if environment.get("OTEL_SERVICE_NAME") else {"service.name": service}
    provider = TracerProvider(resource=Resource.create({**named, "service.version": VERSION}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)
