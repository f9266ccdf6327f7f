"""What goes into the worker process: the scaled model, the phases to capture, the options. No torch here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.capture.fitting import width_for
from engine.capture.options import CaptureOptions
from engine.capture.shape import WHOLE, ModelShape, scaled_shape
from engine.launch import PHASES, Phase
from engine.models.facts import ModelFacts
from engine.verdict import PhaseGraph

__all__ = ["CaptureJob", "CaptureOptions", "PhasePlan", "choose_sizes", "job_for"]

JOB_VERSION = 2

CPU_SIZES = 3
CPU_LARGEST: Mapping[Phase, int] = {"prefill": 64, "decode": 16}
GPU_SIZES = 8
GPU_LARGEST: Mapping[Phase, int] = {"prefill": 2048, "decode": 512}
SIZE_RULE = (
    f"{CPU_SIZES} of the plan's sizes on a CPU and {GPU_SIZES} on a GPU unless a number was given, from the largest to "
    f"the smallest in even steps, of those up to {CPU_LARGEST['prefill']} tokens (prefill) and {CPU_LARGEST['decode']} "
    f"requests (decode) on a CPU, {GPU_LARGEST['prefill']} and {GPU_LARGEST['decode']} on a GPU, or the plan's "
    "smallest where none is as small; a full prefill graph has at most 16 request slots on a CPU; key-value "
    "caches have pages of 4 tokens, and recurrent state is also kept at every fourth token"
)
DEFAULT_SIZES: Mapping[Phase, tuple[int, ...]] = {"prefill": (4, 16, 64), "decode": (1, 2, 4, 8)}
DEFAULT_MAX_REQUESTS = 4
"""Request slots of one full prefill graph where neither the plan nor the chunk size says how many."""

TOKENS_A_REQUEST = 512
"""SGLang 0.5.23, model_executor/model_runner_components/cuda_graph_setup.py: without ``full_prefill_max_req`` a full
prefill graph has one request slot for every 512 tokens of ``chunked_prefill_size``, and at least one."""

CPU_MOST_REQUESTS = 16

DEFAULT_REPLAYS = 7
"""Enough for each scenario of :mod:`engine.capture.runners.scenarios`, once."""

DEFAULT_PAGE_SIZE = 4
"""Tokens of one page of the key-value cache, whatever the launch says: every request then has several pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePlan:
    """One phase as the launch would capture it: the backend's name as the engine's, every capture size, ascending.

    ``max_requests``: request slots baked into each full prefill graph (the engine's ``full_prefill_max_req``).
    """

    phase: Phase
    backend: str
    sizes: tuple[int, ...]
    max_requests: int = DEFAULT_MAX_REQUESTS

    @property
    def enabled(self) -> bool:
        return self.backend != "disabled"

    def to_dict(self) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "backend": self.backend,
            "sizes": list(self.sizes),
            "max_requests": self.max_requests,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> PhasePlan:
        return cls(
            phase=value["phase"],
            backend=value["backend"],
            sizes=tuple(value["sizes"]),
            max_requests=value["max_requests"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureJob:
    """One capture. ``seed`` seeds the random weights and batches, so that a report can be made again.

    ``replays``: of each graph; ``page_size``: tokens of one page of the key-value cache. ``whole``: the model in its
    own dimensions and depth, for estimates. ``config`` and ``layer_kinds``: the model as an installed engine builds it,
    for captures by one.
    """

    id: str
    shape: ModelShape
    plans: tuple[PhasePlan, ...]
    options: CaptureOptions
    seed: int = 20250
    replays: int = DEFAULT_REPLAYS
    page_size: int = DEFAULT_PAGE_SIZE
    whole: ModelShape | None = None
    config: Mapping[str, Any] | None = None
    layer_kinds: tuple[str, ...] = ()

    def plan(self, phase: Phase) -> PhasePlan | None:
        """The plan of that phase, or None where the job does not ask for it."""
        return next((plan for plan in self.plans if plan.phase == phase), None)

    def to_json(self) -> str:
        return json.dumps(
            {
                "version": JOB_VERSION,
                "id": self.id,
                "shape": self.shape.to_dict(),
                "plans": [plan.to_dict() for plan in self.plans],
                "options": self.options.to_dict(),
                "seed": self.seed,
                "replays": self.replays,
                "page_size": self.page_size,
                "whole": None if self.whole is None else self.whole.to_dict(),
                "config": None if self.config is None else dict(self.config),
                "layer_kinds": list(self.layer_kinds),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> CaptureJob:
        """The job that :meth:`to_json` wrote.

        Raises:
            ValueError: for another version of the form, or a text that is not one.
        """
        value = json.loads(text)
        version = value.get("version") if isinstance(value, dict) else None
        if version != JOB_VERSION:
            raise ValueError(f"This worker reads capture jobs of version {JOB_VERSION}, not {version!r}.")
        return cls(
            id=value["id"],
            shape=ModelShape.from_dict(value["shape"]),
            plans=tuple(PhasePlan.from_dict(plan) for plan in value["plans"]),
            options=CaptureOptions.from_dict(value["options"]),
            seed=value["seed"],
            replays=value["replays"],
            page_size=value["page_size"],
            whole=None if value.get("whole") is None else ModelShape.from_dict(value["whole"]),
            config=value.get("config"),
            layer_kinds=tuple(value.get("layer_kinds", ())),
        )


def job_for(
    *,
    id: str,  # noqa: A002 - the public name of a capture's identity everywhere else
    facts: ModelFacts,
    graph: Mapping[Phase, PhaseGraph],
    options: CaptureOptions,
    chunked_prefill_size: int | None = None,
    seed: int = 20250,
) -> CaptureJob:
    """The job that captures what ``graph`` says for a model of these facts.

    ``graph`` is the verdict's effective graph, or, where a rejected launch is to be proven, the prediction's.
    ``chunked_prefill_size`` (tokens) bounds prefill sizes as it bounds a prefill batch in the engine; -1 or None: no
    bound.
    """
    plans = []
    for phase in PHASES:
        if phase not in options.phases:
            continue
        state = graph.get(phase, PhaseGraph())
        sizes = tuple(sorted(set(state.bs or DEFAULT_SIZES[phase])))
        if phase == "prefill" and chunked_prefill_size and chunked_prefill_size > 0:
            sizes = tuple(s for s in sizes if s <= chunked_prefill_size) or sizes[:1]
        plans.append(
            PhasePlan(
                phase=phase,
                backend=state.backend or "disabled",
                sizes=sizes,
                max_requests=state.full_prefill_max_req or _request_slots(chunked_prefill_size),
            )
        )
    return CaptureJob(
        id=id,
        shape=scaled_shape(facts, options.layers, width=_width(facts, plans, options)),
        plans=tuple(plans),
        options=options,
        seed=seed,
        whole=scaled_shape(facts, max(1, len(facts.layer_kinds)), width=WHOLE),
        config=facts.config if options.engine != "reference" else None,
        layer_kinds=facts.layer_kinds if options.engine != "reference" else (),
    )


def _width(facts: ModelFacts, plans: Sequence[PhasePlan], options: CaptureOptions) -> int:
    largest = {plan.phase: max(choose_sizes(plan, options, on_cpu=False), default=1) for plan in plans}
    requests = max([largest.get("decode", 1), *(plan.max_requests for plan in plans)])
    return width_for(facts, options, tokens=largest.get("prefill", largest.get("decode", 1)), requests=requests)


def _request_slots(chunked_prefill_size: int | None) -> int:
    if not chunked_prefill_size or chunked_prefill_size < 0:
        return DEFAULT_MAX_REQUESTS
    return max(chunked_prefill_size // TOKENS_A_REQUEST, 1)


def choose_sizes(plan: PhasePlan, options: CaptureOptions, *, on_cpu: bool) -> tuple[int, ...]:
    """The sizes that a worker captures, ascending, by :data:`SIZE_RULE` unless the options list them.

    >>> plan = PhasePlan(phase="decode", backend="full", sizes=(1, 2, 4, 8, 16, 32, 64))
    >>> choose_sizes(plan, CaptureOptions(), on_cpu=True)
    (1, 4, 16)
    """
    if isinstance(options.sizes, tuple):
        return tuple(sorted(set(options.sizes)))
    largest = (CPU_LARGEST if on_cpu else GPU_LARGEST)[plan.phase]
    sizes = tuple(s for s in plan.sizes if s <= largest) or plan.sizes[:1]
    count = options.sizes if options.sizes is not None else (CPU_SIZES if on_cpu else GPU_SIZES)
    if count >= len(sizes):
        return sizes
    if count == 1:
        return sizes[-1:]
    last = len(sizes) - 1
    return tuple(sizes[round(i * last / (count - 1))] for i in range(count))
