"""What the engine decides about the prefill graph after resolution, while the model loads.

Source: SGLang 0.5.23, ``model_executor/model_runner_components/cuda_graph_setup.py`` (``capture_prefill_graph``);
0.5.14 and 0.5.15, ``model_executor/model_runner.py`` (``init_prefill_cuda_graph``). One reason, one function; the first
that holds is the engine's.
"""

from __future__ import annotations

from functools import cache

from engine.sglang.loading import eagle_target, language_model, layers, lora, pipeline_context, sizes
from engine.sglang.loading.base import LoadStep
from engine.sglang.resolution import Resolution, Version
from engine.verdict import Decision, Load

SETUP = "model_executor/model_runner_components/cuda_graph_setup.py: capture_prefill_graph"

STEPS: tuple[LoadStep, ...] = (
    LoadStep(name="load-eagle-target", run=eagle_target.run, source=SETUP),
    LoadStep(name="load-lora", run=lora.run, source=SETUP, since=(0, 5, 17)),
    LoadStep(name="load-language-model", run=language_model.run, source=SETUP),
    LoadStep(name="load-sizes-unset", run=sizes.unset, source=SETUP),
    LoadStep(name="load-pipeline-context", run=pipeline_context.run, source=SETUP, since=(0, 5, 19)),
    LoadStep(name="load-sizes-fitting", run=sizes.fitting, source=SETUP, since=(0, 5, 17)),
    LoadStep(name="load-layers-missing", run=layers.missing, source=SETUP),
    LoadStep(name="load-layers", run=layers.addressable, source=SETUP),
)
"""In the engine's order."""

_ATTEMPTED = "every layer's attention can be addressed"


@cache
def _steps_of(version: Version) -> tuple[LoadStep, ...]:
    return tuple(step for step in STEPS if step.applies(version))


def load_of(r: Resolution) -> tuple[Load, Decision | None]:
    """What becomes of the resolved prefill graph, and the decision where it is given up. ``r`` is not changed."""
    if r.graph["prefill"].backend == "disabled":
        return _DISABLED, None
    for step in _steps_of(r.release.version):
        why = step.run(r)
        if why is not None:
            decision = Decision(
                step=step.name,
                layer="engine",
                key="prefill.load",
                before="attempted",
                after="dropped",
                why=why,
                source=step.source,
            )
            return Load(prefill="dropped", why=why), decision
    return _ATTEMPT, None


_DISABLED = Load(prefill="disabled", why="the prefill backend resolved to disabled")
_ATTEMPT = Load(prefill="attempted", why=_ATTEMPTED)
