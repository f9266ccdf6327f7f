"""Traces: from the caller's own trace through the request to the examination, received by a real OTLP endpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_tests.observation.collector import running_collector
from api_tests.server import running_server
from api_tests.service.launches import ACCEPTED
from service.observation.tracing import Tracing, open_tracing

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_request_joins_the_callers_trace(tmp_path: Path) -> None:
    with running_collector() as collector:
        with running_server(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as server, server.client() as client:
            given = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "X-Request-ID": "traced"}
            assert client.post("/v1/validations", json=ACCEPTED, headers=given).status_code == 200
            assert client.get("/livez").status_code == 200
            assert server.stop() == 0
        spans = {span.name: span for span in collector.spans}
    assert set(spans) == {"POST /v1/validations", "examine"}, "probes make no spans"
    request, examine = spans["POST /v1/validations"], spans["examine"]
    assert request.trace_id.hex() == examine.trace_id.hex() == TRACE
    assert request.parent_span_id.hex() == "00f067aa0ba902b7"
    assert examine.parent_span_id == request.span_id
    said = {attribute.key: attribute.value for attribute in request.attributes}
    assert said["http.route"].string_value == "/v1/validations"
    assert said["http.response.status_code"].int_value == 200
    assert said["graphgate.request_id"].string_value == "traced"
    assert collector.services == {"graphgate"}


@pytest.mark.parametrize(
    "environment", [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}]
)
def test_without_an_endpoint_there_are_no_traces(environment: dict[str, str]) -> None:
    tracing = open_tracing("graphgate", environment)
    assert not tracing.on
    with tracing.span("anything", size=1) as span, tracing.request("GET", {}):
        span.set_attribute("nobody", "listens")


def test_a_tracing_without_provider_can_be_closed() -> None:
    closed = Tracing()
    closed.close()
    assert not closed.on
