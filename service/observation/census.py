"""What only the database knows, asked each time the metrics are read: every API process gives the same figures."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from service.store.census import take_census
from service.store.database import Database

_log = logging.getLogger("graphgate.metrics")


class CensusCollector(Collector):
    """Captures by state and the age of the queue; ``graphgate_database_up`` is 0 where the database does not answer,
    and the others are then left out rather than guessed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering must not ask the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("graphgate_database_up", "Whether the database answered this question")
        try:
            census = take_census(self._database)
        except SQLAlchemyError:
            _log.warning("the database did not answer for the metrics", exc_info=True)
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        states = GaugeMetricFamily("graphgate_captures", "Captures that have not ended, by state", labels=["state"])
        for state, count in census.states.items():
            states.add_metric([state], count)
        yield states
        oldest = GaugeMetricFamily("graphgate_queue_age_seconds", "Seconds that the oldest waiting capture has waited")
        oldest.add_metric([], census.oldest_s)
        yield oldest
