"""What the engine changes for one model family: one file a family, collected here in the engine's own order.

A family's function looks at the launch and returns the values it wants, by argument name, each with its reason; all
functions of an architecture look before any value is set, and the last one wins. Source: SGLang 0.5.23,
``arg_groups/model_overrides/*`` and ``arg_groups/overrides.py`` (``collect_model_override_declarations``).
"""

from __future__ import annotations

from functools import cache

from engine.sglang.derived import knows_architecture
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.model_overrides import (
    beam,
    bfloat16_only,
    deepseek,
    deepseek_v4,
    default_backends,
    embedding_gemma2,
    exaone,
    gemma4,
    glm4_moe,
    gpt_oss,
    hybrid_swa_off,
    inkling,
    iquest_q1,
    kimi_k3,
    llama4,
    mimo_v2,
    minicpm,
    minimax_m3,
    moe_runners,
    moss_vl,
    muse_spark,
    nemotron_h,
    no_attention_dp,
    qwen3_5,
    qwen3_moe,
    qwen3_vl,
    qwen4_exp,
    step3p,
)
from engine.sglang.steps.model_overrides.base import Override

_FAMILIES: tuple[Override, ...] = (
    *bfloat16_only.OVERRIDES,
    *moe_runners.OVERRIDES,
    *beam.OVERRIDES,
    *deepseek.OVERRIDES,
    *deepseek_v4.OVERRIDES,
    *embedding_gemma2.OVERRIDES,
    *no_attention_dp.OVERRIDES,
    *exaone.OVERRIDES,
    *default_backends.OVERRIDES,
    *hybrid_swa_off.OVERRIDES,
    *gemma4.OVERRIDES,
    *glm4_moe.OVERRIDES,
    *gpt_oss.OVERRIDES,
    *inkling.OVERRIDES,
    *iquest_q1.OVERRIDES,
    *kimi_k3.OVERRIDES,
    *llama4.OVERRIDES,
    *mimo_v2.OVERRIDES,
    *minicpm.OVERRIDES,
    *minimax_m3.OVERRIDES,
    *moss_vl.OVERRIDES,
    *nemotron_h.OVERRIDES,
    *qwen3_5.OVERRIDES,
    *qwen3_moe.OVERRIDES,
    *qwen3_vl.OVERRIDES,
    *qwen4_exp.OVERRIDES,
    *muse_spark.OVERRIDES,
    *step3p.OVERRIDES,
)


@cache
def overrides_of(architecture: str, version: Version, known: bool) -> tuple[Override, ...]:
    """The families' functions for one architecture in one release; ``known``: the release has it."""
    return tuple(o for o in _FAMILIES if o.applies(architecture, version, known=known))


def run(r: Resolution) -> None:
    """Collect what the families want of this launch, then set it."""
    families = overrides_of(r.model.arch, r.release.version, knows_architecture(r))
    collected = [(o, o.look(r)) for o in families]
    for override, values in collected:
        for name, value in values.items():
            r.set(name, value, f"the engine's own setting for {override.family}")
