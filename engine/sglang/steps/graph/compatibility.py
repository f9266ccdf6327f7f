"""The engine's auto-disable cascade: which launches lose a prefill graph that nobody asked for by name.

An explicit prefill backend, whichever it is, skips the cascade. Only ``breakable`` (and ``tc_piecewise``, while it was
there) has rules; the list for ``full`` is empty in the engine.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.sglang.derived import uses_mla
from engine.sglang.resolution import Resolution
from engine.sglang.steps.graph import breakable_before, tc_piecewise
from engine.sglang.steps.graph.prefill_cp import supports_breakable_under_cp

_A2A_WITH_BREAKABLE = ("none", "deepep", "megamoe", "flashinfer")


def run(r: Resolution) -> None:
    """Switch the default prefill graph off where the engine deems it incompatible."""
    if ("prefill", "backend") in r.locked:
        return
    state = r.graph["prefill"]
    if r.args.pp_size > 1 and state.backend == "breakable" and r.since(0, 5, 19):
        r.set_graph(
            "prefill",
            "backend",
            "disabled",
            "with pipeline parallelism the breakable prefill graph is opt-in (--cuda-graph-backend-prefill=breakable)",
        )
        return
    tc_piecewise.prefer(r)
    if state.backend == tc_piecewise.BACKEND:
        tc_piecewise.drop_incompatible(r)
    elif state.backend == "breakable":
        _breakable(r)


def breakable_incompatibility(r: Resolution) -> str | None:
    """The first of the release's rules against the breakable prefill graph that applies, by its name."""
    version = r.release.version
    rules = breakable_before.rules(version) if version <= breakable_before.UNTIL else _RULES
    return next((name for name, applies in rules if applies(r)), None)


def _breakable(r: Resolution) -> None:
    name = breakable_incompatibility(r)
    if name is None:
        return
    r.set_graph("prefill", "backend", "disabled", f"the breakable graph is incompatible with {name}")
    if name != _CONTEXT_PARALLEL or not r.since(0, 5, 23):  # from 0.5.23 on a later step warns of it
        r.warn(f"WARNING: Breakable CUDA graph is incompatible with {name}; disabling prefill CUDA graph.")


_CONTEXT_PARALLEL = "context parallel (attn_cp_size > 1)"


def _kda(r: Resolution) -> bool:
    if not r.since(0, 5, 20):
        return False
    spared = r.since(0, 5, 22) and "Glm5NextForConditionalGeneration" in r.model.architectures
    return bool(r.model.uses_kda_attention) and not spared


def _deepseek_v4(r: Resolution) -> bool:
    return bool(r.model.is_deepseek_v4) and not (r.since(0, 5, 23) and supports_breakable_under_cp(r))


def _context_parallel(r: Resolution) -> bool:
    return bool(r.args.attn_cp_size > 1) and not supports_breakable_under_cp(r)


def _multimodal(r: Resolution) -> bool:
    return bool(r.model.is_multimodal) and not r.model.is_multimodal_breakable_cuda_graph_supported


def _mla(r: Resolution) -> bool:
    return not r.since(0, 5, 18) and uses_mla(r) and not r.model.is_deepseek_dsa


def _nemotron_h(r: Resolution) -> bool:
    return not r.since(0, 5, 18) and r.model.arch in _NEMOTRON_H


_NEMOTRON_H = ("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "NemotronHForCausalLMMTP")
_RULES: tuple[tuple[str, Callable[[Resolution], bool]], ...] = (
    ("MLA attention (non-DSA)", _mla),
    ("NemotronH (hybrid Mamba2 prefill)", _nemotron_h),
    ("KDA hybrid linear attention", _kda),
    ("DeepSeek-V4 (heavy capture-pool memory pressure)", _deepseek_v4),
    (_CONTEXT_PARALLEL, _context_parallel),
    ("decode context parallel (dcp_size > 1)", lambda r: bool(r.args.dcp_size > 1)),
    ("two-batch overlap", lambda r: bool(r.args.enable_two_batch_overlap)),
    ("unvalidated a2a backend", lambda r: r.args.moe_a2a_backend not in _A2A_WITH_BREAKABLE),
    ("multimodal model", _multimodal),
)
