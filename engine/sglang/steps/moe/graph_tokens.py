"""How many tokens the largest decode or verify graph dispatches on one data-parallel rank."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.speculative.adaptive import candidate_steps


def decode_graph_tokens(r: Resolution) -> tuple[int, int]:
    """(requests, tokens a request); (0, 1) where this server captures no decode graph."""
    args, state = r.args, r.graph["decode"]
    if args.disaggregation_mode == "prefill" or state.backend == "disabled":
        return 0, 1
    requests = state.max_bs or 0
    if args.max_running_requests is not None:
        requests = min(requests, max(1, args.max_running_requests // args.attn_dp_size))
    if not args.speculative_algorithm:
        return requests, 1
    return requests, most_draft_tokens(r) or 1


def most_draft_tokens(r: Resolution) -> int | None:
    """The largest number of draft tokens that a request may have; None where it drafts none."""
    drafts: int | None = r.args.speculative_num_draft_tokens
    if drafts is not None and r.args.speculative_adaptive:
        return max(candidate_steps(r)) + 1
    return drafts
