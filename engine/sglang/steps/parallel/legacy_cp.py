"""The flags of prefill context parallelism until 0.5.19, one for DSA and one for other attention, and their modes.

Source: SGLang 0.5.19, ``arg_groups/parallel_hook.py`` (``handle_legacy_cp_arguments``).
"""

from __future__ import annotations

from engine.sglang.resolution import Resolution

_STRATEGY = {"in-seq-split": "zigzag", "round-robin-split": "interleave"}
_MODE = {strategy: mode for mode, strategy in _STRATEGY.items()}


def run(r: Resolution) -> None:
    """Old flags switch the new one on and choose its strategy; then they follow it. Runs again once backends stand."""
    args = r.args
    plain, dsa = args.enable_prefill_context_parallel, args.enable_dsa_prefill_context_parallel
    if plain or dsa:
        r.set("enable_prefill_cp", True, "the old flags of prefill context parallelism mean this")
    for given, mode in ((plain, args.prefill_cp_mode), (dsa, args.dsa_prefill_cp_mode)):
        if given and args.cp_strategy is None:
            r.set("cp_strategy", _STRATEGY[mode], f"the old mode {mode} means this")
    if (plain and dsa) or not args.enable_prefill_cp or args.cp_strategy is None:
        return
    if dsa or args.attention_backend in ("dsa", "dsv4"):
        r.fill("enable_dsa_prefill_context_parallel", True)
        r.fill("enable_prefill_context_parallel", False)
    else:
        r.fill("enable_prefill_context_parallel", True)
    r.fill("dsa_prefill_cp_mode", _MODE[args.cp_strategy])
    r.fill("prefill_cp_mode", _MODE[args.cp_strategy])
