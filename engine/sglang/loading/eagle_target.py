"""EAGLE's target model goes without a prefill graph where that graph would not return hidden states."""

from __future__ import annotations

from engine.sglang.resolution import Resolution

_EAGLE = ("EAGLE", "EAGLE3", "NEXTN", "FROZEN_KV_MTP")


def run(r: Resolution) -> str | None:
    """EAGLE drafting, no server-wide hidden states, and a backend that does not capture them for its target."""
    args = r.args
    if args.speculative_algorithm not in _EAGLE or _returns_all(r):
        return None
    backend = r.graph["prefill"].backend
    if backend == "tc_piecewise" or (backend != "breakable" and not r.since(0, 5, 19)):
        return f"the target of EAGLE drafting goes without a {backend} prefill graph"
    return None


def _returns_all(r: Resolution) -> bool:
    """Whether the server returns the hidden states of every token."""
    mode = getattr(r.args, "return_hidden_states_mode", None)
    if mode == "last" and r.since(0, 5, 17):
        return False
    return mode == "full" or bool(r.args.enable_return_hidden_states)
