"""Prefill context parallelism of hybrid linear-attention models: the context-parallel group is the TP group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.sglang import environ
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.refusals import invalid

_GLM = "Glm5NextForConditionalGeneration"
_QWEN4 = "Qwen4ExpForConditionalGeneration"
_STRATEGY = {_GLM: "interleave", _QWEN4: "zigzag"}


def run(r: Resolution) -> None:
    """Where the model has it ported: check the combination; Qwen4-Exp runs prefill eagerly then.

    Source: SGLang 0.5.23, ``arg_groups/cp_tp_group_sharing_hook.py``.
    """
    args = r.args
    if not args.enable_prefill_cp or args.attn_cp_size <= 1 or r.model.arch not in _STRATEGY:
        return
    newest = r.since(0, 5, 23)
    if r.model.arch == _QWEN4 and not newest:
        return
    arch = r.model.arch
    if args.attn_cp_size != args.tp_size:
        raise invalid(
            "CP-TP group sharing requires --attn-cp-size == --tp-size, got "
            f"attn_cp_size={args.attn_cp_size}, tp_size={args.tp_size}."
        )
    if args.cp_strategy != _STRATEGY[arch]:
        raise invalid(f"CP-TP group sharing requires --cp-strategy {_STRATEGY[arch]}.")
    _speculative(args, arch, newest=newest)
    for flag, enabled in _unsupported(args, arch, newest=newest).items():
        if enabled:
            raise invalid(f"--{flag} is not supported with CP-TP group sharing.")
    if newest and args.disaggregation_mode == "prefill" and environ.read(r, "SGLANG_DISAGG_STAGING_BUFFER"):
        raise invalid("SGLANG_DISAGG_STAGING_BUFFER is not supported with CP-TP group sharing.")
    for name, count in _linear_heads(r).items():
        if count % args.tp_size:
            raise invalid(f"{name}={count} must be divisible by --tp-size={args.tp_size}.")
    r.set("enable_cp_tp_group_sharing", True, f"the port of {arch}")
    if arch == _QWEN4 or not newest:
        r.set_graph("prefill", "backend", "disabled", "its sequence collectives change size with the batch")


def _speculative(args: Any, arch: str, *, newest: bool) -> None:
    if args.speculative_algorithm is None:
        return
    if arch != _GLM:
        raise invalid("--speculative-algorithm is not supported with CP-TP group sharing.")
    native = (
        args.speculative_algorithm.upper() in ("EAGLE", "NEXTN")
        and args.speculative_draft_model_path in (None, args.model_path)
        and args.speculative_eagle_topk in (None, 1)
    )
    if not newest and not native:
        raise invalid("CP/TP group sharing only supports native MTP with top-k 1.")
    if args.speculative_algorithm != "DFLASH" and not native:
        raise invalid("CP/TP group sharing only supports DFLASH or native MTP with top-k 1.")


def _unsupported(args: Any, arch: str, *, newest: bool) -> dict[str, bool]:
    flags = {
        "enable-dsa-cache-layer-split": bool(args.enable_dsa_cache_layer_split),
        "dcp-size > 1": args.dcp_size > 1,
        "enable-mixed-chunk": bool(args.enable_mixed_chunk),
        "moe-dp-size > 1": args.moe_dp_size > 1,
    }
    mode = args.disaggregation_mode
    if not newest:
        flags["disaggregation-mode"] = mode != "null"
    elif arch == _QWEN4:
        flags |= {
            "ep-size > 1": args.ep_size > 1,
            "moe-a2a-backend": args.moe_a2a_backend != "none",
            "enable-waterfill": bool(args.enable_waterfill),
            "pp-size > 1": args.pp_size > 1,
            "disaggregation-mode decode": mode == "decode",
        }
    elif mode != "null":
        flags |= {
            "disaggregation-mode decode": mode == "decode",
            "disaggregation-transfer-backend != mooncake": args.disaggregation_transfer_backend != "mooncake",
            "speculative-algorithm != DFLASH": args.speculative_algorithm != "DFLASH",
            "pp-size > 1": args.pp_size > 1,
            "dp-size > 1": args.dp_size > 1,
            "ep-size > 1": args.ep_size > 1,
        }
    return flags


def _linear_heads(r: Resolution) -> dict[str, int]:
    """Heads of the linear-attention layers, by the configuration's names."""
    config = r.model.text if r.model.text.get("linear_num_key_heads") is not None else r.model.hf
    if config.get("linear_num_key_heads") is not None:
        return {name: config.require(name) for name in ("linear_num_key_heads", "linear_num_value_heads")}
    nested = r.model.text.get("linear_attn_config") or r.model.hf.get("linear_attn_config")
    if not isinstance(nested, Mapping):
        raise Refusal("AttributeError", "'NoneType' object has no attribute 'linear_attn_config'")
    return {"num_heads": nested["num_heads"]}
