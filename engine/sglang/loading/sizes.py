"""Capture sizes: none set, or none that the model's context and the server's request slots can fill."""

from __future__ import annotations

from engine.sglang.resolution import Resolution

MOST_SLOTS = 4096
"""Request slots where nobody limits them: the engine estimates them from free memory, and never takes more."""


def unset(r: Resolution) -> str | None:
    """No capture size resolved."""
    return None if r.graph["prefill"].bs else "no capture size is set"


def most_tokens(r: Resolution) -> int:
    """The largest prefill size that requests can fill: request slots times context length, in tokens.

    The slots that free memory leaves are not known before the load, so the limit here is the highest possible.
    """
    prefill, args = r.graph["prefill"], r.args
    slots = MOST_SLOTS if args.max_running_requests is None else max(1, args.max_running_requests // _groups(r))
    if prefill.backend == "full":
        wanted = prefill.full_prefill_max_req
        slots = min(slots, max(args.chunked_prefill_size // 512, 1) if wanted is None else wanted)
    return slots * r.model.context_len


def fitting(r: Resolution) -> str | None:
    """Every size is larger than requests times context length."""
    most = most_tokens(r)
    smallest = min(r.graph["prefill"].bs or (0,))
    if smallest > most:
        return f"the smallest capture size, {smallest} tokens, is above the {most} tokens that requests can hold"
    return None


def _groups(r: Resolution) -> int:
    """Groups of attention data parallelism, each with its own slots."""
    args = r.args
    if r.since(0, 5, 22):
        return max(1, int(args.attn_dp_size))
    return max(1, int(args.dp_size)) if args.enable_dp_attention else max(1, int(args.attn_dp_size or 1))
