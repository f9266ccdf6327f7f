"""The metrics of a process that has no API: a worker's, on a port of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from wsgiref.simple_server import WSGIServer

from prometheus_client import start_http_server

from service.observation.metrics import Metrics
from service.settings import SettingsError


class MetricsAddressError(SettingsError):
    """Nothing can listen at the address that is given for metrics."""


@contextmanager
def metrics_endpoint(metrics: Metrics, address: str | None) -> Iterator[None]:
    """Serve ``/metrics`` at ``HOST:PORT`` while the block runs; None: nowhere.

    Raises:
        MetricsAddressError: nothing can listen there.
    """
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    try:
        server, thread = start_http_server(int(port), host, registry=metrics.registry)
    except (OSError, ValueError) as error:
        raise MetricsAddressError(
            f"GRAPHGATE_METRICS_ADDRESS is {address!r}, and nothing can listen there: {error}. "
            "Give HOST:PORT, such as 0.0.0.0:9464."
        ) from None
    assert isinstance(server, WSGIServer)  # noqa: S101 - documented since 0.20
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
