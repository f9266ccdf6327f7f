"""What a capture of the scaled model lets one expect of the whole one. Estimates, never measurements. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.launch import Phase

ESTIMATE_RULE = (
    "Time: every layer of the scaled model was timed eagerly at each captured size; a graph's times are multiplied by "
    "the ratio of what is not layers plus each kind of layer's time by its number in the whole model, to the same with "
    "the captured numbers. Only depth is extrapolated: widths, and on a CPU the processor, are those of the capture. "
    "Bytes of a graph: in proportion to the number of layers, which is too much where layers reuse one pool. Cache and "
    "state: the whole model's own dimensions and layers, unsharded, keys, values and windows in 16 bits, recurrent "
    "state in 32 bits; where the config gives no dimension, the scaled one."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEstimate:
    """One captured graph at the whole model's depth: seconds, and bytes of the graph's memory."""

    size: int
    capture_s: float
    replay_s: float
    eager_s: float
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The whole model, by :data:`ESTIMATE_RULE`.

    ``captured`` and ``whole``: number of layers of each kind with what follows its mixer.
    ``cache_bytes_per_token`` and ``state_bytes_per_request`` are of all layers; ``state_bytes`` of the state tables for
    as many requests as the largest decode graph has.
    """

    rule: str = ESTIMATE_RULE
    captured: Mapping[str, int] = field(default_factory=dict)
    whole: Mapping[str, int] = field(default_factory=dict)
    cache_bytes_per_token: int = 0
    state_bytes_per_request: int = 0
    state_bytes: int = 0
    phases: Mapping[Phase, tuple[GraphEstimate, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in self.__slots__},
            "captured": dict(self.captured),
            "whole": dict(self.whole),
            "phases": {phase: [asdict(graph) for graph in graphs] for phase, graphs in self.phases.items()},
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Estimate:
        """The estimate that :meth:`to_dict` wrote."""
        phases = {p: tuple(GraphEstimate(**graph) for graph in graphs) for p, graphs in value["phases"].items()}
        return cls(**{**value, "phases": phases})
