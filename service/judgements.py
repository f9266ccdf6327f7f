"""Launches are asked about again and again: by each restart of a pod, by each run of a pipeline. What was judged is
remembered, since nothing but the launch, its model's facts, the policy and the day makes the verdict."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.launch import Launch
from engine.models.facts import ModelFacts
from engine.preflight import Checked
from service import jsontext

_MOST = 512


@dataclass(frozen=True, slots=True)
class Judged:
    """An examined launch; ``text`` is its verdict as JSON."""

    checked: Checked
    text: bytes


class Judgements:
    """Of the last ``most`` different launches, under the one policy of this process. For all threads."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Judged] = OrderedDict()

    def of(self, launch: Launch, facts: ModelFacts, judge: Callable[[], Checked]) -> Judged:
        """The judgement on the launch of the model with these facts: remembered, or made by ``judge`` now."""
        key = _key(launch, facts)
        with self._lock:
            known = self._kept.get(key)
            if known is not None and known.checked.facts is facts:
                self._kept.move_to_end(key)
                return known
        checked = judge()
        judged = Judged(checked, jsontext.dumps(checked.verdict.to_dict()))
        with self._lock:
            self._kept[key] = judged
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return judged


def _key(launch: Launch, facts: ModelFacts) -> Hashable:
    """Everything that a verdict depends on; the day (UTC) too, since exceptions of a policy end with one."""
    model = launch.model
    return (
        id(facts),
        (model.id, model.revision, model.path),
        (launch.engine, launch.release, launch.gpu, launch.gpu_count),
        launch.arguments,
        tuple(launch.environment.items()),
        repr(launch.defaults) if launch.defaults else "",
        datetime.now(UTC).date(),
    )
