"""Adaptive drafting: the number of steps follows the acceptance rate, within the steps of its table."""

from __future__ import annotations

from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid
from engine.sglang.versioned import FIRST, at

_CANDIDATE_STEPS: tuple[tuple[Version, tuple[int, ...]], ...] = (((0, 5, 20), (0, 1, 3, 5, 7)), (FIRST, (0, 1, 3, 7)))


def candidate_steps(r: Resolution) -> tuple[int, ...]:
    """Steps of the engine's built-in table (SGLang 0.5.23 and 0.5.19, ``speculative/adaptive_spec_params.py``).

    An operator's own table (``--speculative-adaptive-config``) is a file of the node; it is not read.
    """
    return at(_CANDIDATE_STEPS, r.release.version)


def run(r: Resolution) -> None:
    """Switch it off where it is not supported; else fill in steps, branches and draft tokens."""
    args = r.args
    reason = _unsupported(r)
    if reason is not None:
        r.warn(f"WARNING: speculative_adaptive disabled: {reason}. Falling back to static speculative params.")
        r.set("speculative_adaptive", False, reason)
        return
    candidates = candidate_steps(r)
    if args.speculative_eagle_topk is None:
        r.set("speculative_eagle_topk", 1, "adaptive drafting has one branch", layer="engine-default")
    if args.speculative_num_steps is None:
        middle = candidates[len(candidates) // 2]
        r.set("speculative_num_steps", middle, "the middle of the adaptive steps", layer="engine-default")
    if args.speculative_adaptive_config is None and args.speculative_num_steps not in candidates:
        raise invalid(
            f"--speculative-num-steps={args.speculative_num_steps} is not in the adaptive config candidate_steps "
            f"{list(candidates)}. Pass one of those values."
        )
    r.set("speculative_num_draft_tokens", args.speculative_num_steps + 1, "one more than the steps")


def _unsupported(r: Resolution) -> str | None:
    args = r.args
    if args.speculative_algorithm not in ("EAGLE", "EAGLE3"):
        return f"speculative_algorithm={args.speculative_algorithm} (only EAGLE/EAGLE3 are supported)"
    if args.speculative_eagle_topk is not None and args.speculative_eagle_topk != 1:
        return f"speculative_eagle_topk={args.speculative_eagle_topk} (only topk=1 is supported)"
    if attn_dp_enabled(args):
        name = "attention DP" if r.since(0, 5, 22) else "enable_dp_attention=True"
        return f"{name} is not supported (adaptive tier decisions are not synchronized across DP ranks)"
    if args.enable_multi_layer_eagle:
        return "enable_multi_layer_eagle=True is not supported (MultiLayerEagleWorkerV2 does not implement adaptive)"
    if args.enable_two_batch_overlap:
        return (
            "enable_two_batch_overlap=True is not supported "
            "(adaptive state swap would discard the TboAttnBackend wrapper)"
        )
    if args.enable_pdmux:
        return "enable_pdmux=True is not supported (adaptive state swap does not update decode_attn_backend_group)"
    return None
