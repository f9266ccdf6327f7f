"""``--shared-experts-tp-size``: Kimi-K3's shared experts over fewer ranks than attention."""

from __future__ import annotations

from engine.sglang.derived import connector_type
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, unguarded


@unguarded
def run(r: Resolution) -> None:
    """Check width, model and all-to-all backend."""
    args = r.args
    size = args.shared_experts_tp_size
    if size is None:
        return
    attention = args.tp_size // args.attn_dp_size // args.attn_cp_size
    if size < 1 or attention % size != 0:
        raise invalid(
            f"--shared-experts-tp-size ({size}) must be a positive divisor of attention TP size ({attention})."
        )
    if connector_type(args.model_path) == "instance":
        raise invalid("--shared-experts-tp-size requires a Kimi-K3 model configuration.")
    if r.model.arch != "KimiK3ForConditionalGeneration":
        raise invalid("--shared-experts-tp-size is only supported for Kimi-K3.")
    if args.moe_a2a_backend not in ("deepep", "megamoe", "mooncake", "ascend_fuseep", "mori"):
        raise invalid(
            "--shared-experts-tp-size requires an expert-parallel all-to-all backend (deepep, megamoe, mooncake, "
            "ascend_fuseep or mori)."
        )
