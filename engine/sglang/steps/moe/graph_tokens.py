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
    drafts = args.speculative_num_draft_tokens
    if drafts is not None and args.speculative_adaptive:
        drafts = max(candidate_steps(r)) + 1
    return requests, drafts or 1
