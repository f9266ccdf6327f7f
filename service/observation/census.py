"""What only the database knows, asked each time the metrics are read: every API process gives the same figures."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from service.store.census import take_census
from service.store.database import Database

CENSUS = {
    "graphgate_database_up": "Whether the database answered this question",
    "graphgate_captures": "Captures that wait, run, or were given up and are still kept, by state",
    "graphgate_queue_age_seconds": "Seconds that the oldest waiting capture has waited",
    "graphgate_workers": "Workers that gave a sign of life lately, by kind: cpu, or the GPU",
    "graphgate_captures_unserved": "Captures that wait for a kind of worker of which there is none, by that kind",
}
"""The metrics that are asked for each time."""

_log = logging.getLogger("graphgate.metrics")


class CensusCollector(Collector):
    """Captures by state and the age of the queue; ``graphgate_database_up`` is 0 where the database does not answer,
    and the others are then left out rather than guessed."""

    def __init__(self, database: Database, *, silent_s: float = 15.0) -> None:
        self._database = database
        self._silent_s = silent_s

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering must not ask the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        try:
            census = take_census(self._database, silent_s=self._silent_s)
        except SQLAlchemyError:
            _log.warning("the database did not answer for the metrics", exc_info=True)
            yield _gauge("graphgate_database_up", {}, "", 0)
            return
        yield _gauge("graphgate_database_up", {}, "", 1)
        yield _gauge("graphgate_captures", census.states, "state")
        yield _gauge("graphgate_queue_age_seconds", {}, "", census.oldest_s)
        yield _gauge("graphgate_workers", census.workers, "kind")
        yield _gauge("graphgate_captures_unserved", census.unserved, "kind")


def _gauge(name: str, values: Mapping[str, float], label: str, single: float | None = None) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, CENSUS[name], labels=[label] if label else None)
    if single is not None:
        family.add_metric([], single)
    for key, value in values.items():
        family.add_metric([key], value)
    return family
