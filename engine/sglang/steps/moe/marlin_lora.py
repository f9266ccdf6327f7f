"""The experimental Marlin runner with LoRA adapters on experts."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def run(r: Resolution) -> None:
    """What the runner needs; without adapters it is the stock Marlin path."""
    args = r.args
    if args.moe_runner_backend != "experimental_sgl_marlin":
        return
    if args.ep_size > 1 and args.moe_a2a_backend != "none":
        raise invalid("experimental_sgl_marlin EP requires --moe-a2a-backend none")
    if not (args.enable_lora or (args.enable_lora is None and args.lora_paths)):
        return
    if not args.lora_use_virtual_experts:
        raise invalid("experimental_sgl_marlin LoRA requires --lora-use-virtual-experts")
    if args.lora_backend != "triton":
        raise invalid("experimental_sgl_marlin LoRA requires --lora-backend triton")
    if args.ep_size > 1 and (
        args.init_expert_location != "trivial"
        or args.ep_num_redundant_experts != 0
        or args.enable_eplb
        or args.elastic_ep_backend is not None
        or args.enable_elastic_expert_backup
    ):
        raise invalid(
            "experimental_sgl_marlin EP requires trivial expert placement without redundancy, EPLB, or elastic EP"
        )
