"""UNO: the target drafts for itself through a LoRA adapter."""

from __future__ import annotations

from typing import Any

from engine.sglang.derived import attention_backends, attn_dp_enabled
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid

_MOST_NODES = 128
_MOST_SLOTS = 2048


def run(r: Resolution) -> None:
    """What it excludes, the width or tree, then one GPU with FA3."""
    args = r.args
    if not args.device.startswith("cuda"):
        raise invalid("UNO only supports CUDA.")
    if args.speculative_draft_model_path is not None:
        raise invalid("UNO reuses the target model and does not accept --speculative-draft-model-path.")
    if args.uno_lora_path is None:
        raise invalid("UNO requires --uno-lora-path.")
    if args.enable_deterministic_inference:
        raise invalid(
            "UNO does not support --enable-deterministic-inference because its sampling path does not use per-request "
            "seeds."
        )
    if args.enable_strict_thinking:
        raise invalid("UNO does not support --enable-strict-thinking because it requires grammar decoding.")
    width = args.speculative_num_draft_tokens
    if width is None or int(width) < 1:
        raise invalid(
            "UNO requires --speculative-num-draft-tokens to be a positive integer denoting the linear width or tree "
            "verify width Q."
        )
    branches = 1 if args.speculative_eagle_topk is None else int(args.speculative_eagle_topk)
    if branches < 1:
        raise invalid(f"UNO requires --speculative-eagle-topk to be at least 1, got {branches}.")
    if branches > 1:
        _tree(args, int(width), branches)
    else:
        for name in ("speculative_num_steps", "speculative_eagle_topk"):
            if getattr(args, name) not in (None, 1):
                r.warn(f"WARNING: UNO uses {name}=1; overriding {getattr(args, name)}.")
            r.set(name, 1, "UNO drafts a line")
    _rest(r)


def _tree(args: Any, width: int, branches: int) -> None:
    if args.speculative_num_steps is None:
        raise invalid(
            "UNO tree mode requires --speculative-num-steps so its draft width F can be derived as "
            "speculative_num_steps "
            "+ 1."
        )
    steps = int(args.speculative_num_steps)
    if steps < 1:
        raise invalid(f"UNO tree mode requires --speculative-num-steps to be positive, got {steps}.")
    line = steps + 1
    if width < line:
        raise invalid(f"UNO tree mode requires Q >= F; got Q={width}, F={line}.")
    if width > _MOST_NODES:
        raise invalid(f"UNO tree mode currently supports at most Q=128 verify nodes, got Q={width}.")
    if width * branches > _MOST_SLOTS:
        raise invalid(f"UNO tree mode currently supports Q*K <= 2048; got Q*K={width}*{branches}={width * branches}.")
    capacity = nodes = 1
    for _ in range(steps):
        nodes *= branches
        capacity += nodes
        if capacity >= width:
            break
    if width > capacity:
        raise invalid(
            f"UNO tree mode cannot build the requested Q from F and K: Q={width} exceeds capacity={capacity} for "
            f"F={line}, K={branches}."
        )
    parents = branches * (steps - 1) + 1
    if width - 1 > parents:
        raise invalid(
            f"UNO tree mode cannot represent the requested Q in EAGLE's parent-list ABI: Q-1={width - 1} exceeds "
            f"K*(F-2)+1={parents} for F={line}, K={branches}."
        )
    if args.enable_pdmux:
        raise invalid("UNO tree mode does not yet support PDMux.")
    if args.enable_two_batch_overlap:
        raise invalid("UNO tree mode does not yet support two-batch overlap.")
    if args.speculative_accept_threshold_single != 1.0 or args.speculative_accept_threshold_acc != 1.0:
        raise invalid(
            "UNO tree mode reuses EAGLE target-only sampling and requires both speculative accept thresholds to be 1.0."
        )


def _rest(r: Resolution) -> None:
    args = r.args
    if (args.tp_size, args.pp_size) != (1, 1):
        raise invalid("UNO requires TP=PP=1.")
    if attn_dp_enabled(args) or args.attn_cp_size != 1:
        raise invalid("UNO does not support DP attention or context parallelism.")
    if args.enable_lora or args.lora_paths:
        raise invalid("UNO does not support public Multi-LoRA serving.")
    if args.speculative_use_rejection_sampling:
        raise invalid(
            "UNO manages its own stochastic verification and does not use --speculative-use-rejection-sampling."
        )
    if args.enable_mixed_chunk:
        r.set("enable_mixed_chunk", False, "UNO does not support it")
        r.warn("WARNING: Mixed chunked prefill is disabled for UNO speculative decoding.")
    prefill, decode = attention_backends(args)
    if (prefill, decode) != ("fa3", "fa3"):
        raise invalid(
            f"UNO requires FA3 for both prefill and decode attention; got prefill={prefill!r}, decode={decode!r}."
        )
