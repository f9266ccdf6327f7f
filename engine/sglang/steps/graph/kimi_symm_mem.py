"""Symmetric memory gives way to the graphs of Kimi's hybrid models, until 0.5.18.

Source: SGLang 0.5.18, ``arg_groups/kimi_k3_hook.py`` (``disable_kimi_k3_symm_mem``).
"""

from __future__ import annotations

from engine.sglang.derived import connector_type
from engine.sglang.resolution import Resolution

_ARCHITECTURES = ("KimiLinearForCausalLM", "KimiK3ForConditionalGeneration")


def run(r: Resolution) -> None:
    """Switch ``--enable-symm-mem`` off unless both phases run eager."""
    if not r.args.enable_symm_mem or connector_type(r.args.model_path) == "instance":
        return
    if r.model.arch not in _ARCHITECTURES or all(state.backend == "disabled" for state in r.graph.values()):
        return
    r.set("enable_symm_mem", False, "a captured graph outlives the pool's allocations of one forward")
    r.warn("WARNING: Kimi hybrid model: ignoring --enable-symm-mem because CUDA graphs are on.")
