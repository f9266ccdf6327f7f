"""FlashInfer's all-to-all with CuteDSL experts before 0.5.22: a workspace that holds the largest forward of all ranks.

Source: SGLang 0.5.21, ``arg_groups/moe_hook.py`` (``validate_cutedsl_a2a_token_budget``).
"""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, unguarded

_VARIABLE = "SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
_DEFAULT = 1024


@unguarded
def run(r: Resolution) -> None:
    """Prefill, its tc_piecewise graph and the decode graph fit."""
    args = r.args
    if (args.moe_a2a_backend, args.moe_runner_backend) != ("flashinfer", "flashinfer_cutedsl"):
        return
    if args.max_prefill_tokens <= 0 or args.disaggregation_mode == "decode":
        return
    needed = _largest_forward(r)
    declared = environ.known(r, _VARIABLE)  # from 0.5.17 on
    per_rank = (environ.read(r, _VARIABLE) or _DEFAULT) if declared else environ.whole_number(r, _VARIABLE)
    if per_rank is None:
        per_rank = _DEFAULT
    capacity = per_rank * args.ep_size
    if capacity < needed:
        share = (needed + args.ep_size - 1) // args.ep_size
        raise invalid(
            f"FlashInfer MoE A2A with flashinfer_cutedsl requires {_VARIABLE} * ep_size to cover the largest CuteDSL "
            f"MoE forward ({needed} tokens). Otherwise the FlashInfer dispatcher can crash at runtime with "
            "`ValueError: num_tokens (...) exceeds max_num_tokens (...)`. Current values: "
            f"{_VARIABLE}={per_rank}, ep_size={args.ep_size}, capacity={capacity}, required={needed}. Set `export "
            f"{_VARIABLE}={share}` or lower the relevant limit (e.g. --max-prefill-tokens) to <= {capacity}."
        )


def _largest_forward(r: Resolution) -> int:
    args, prefill = r.args, r.graph["prefill"]
    tokens = int(args.max_prefill_tokens)
    if prefill.backend == "tc_piecewise":
        tokens = max(tokens, prefill.max_bs or 0)
    drafts = (args.speculative_num_draft_tokens or 1) if args.speculative_algorithm else 1
    return max(tokens, (r.graph["decode"].max_bs or 0) * drafts)
