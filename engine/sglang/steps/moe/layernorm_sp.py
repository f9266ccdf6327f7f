"""LayerNorm sequence parallelism; with MegaMoE it decides whether prefill keeps its graph."""

from __future__ import annotations

from typing import Any

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, unguarded

_MUSE = "MuseSparkForConditionalGeneration"
_SUPPORTED = [_MUSE, "Qwen3ForCausalLM"]
_CAPACITY = "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK"


@unguarded
def run(r: Resolution) -> None:
    """Models and layouts that it supports; then Muse Spark's two ways through the experts."""
    args = r.args
    mega = bool(args.enable_megamoe_for_layernorm_sp)
    if not args.enable_layernorm_sp:
        if mega:
            raise invalid("--enable-megamoe-for-layernorm-sp requires --enable-layernorm-sp.")
        return
    arch = r.model.arch
    _layout(r, arch, mega=mega)
    if arch != _MUSE:
        return
    if mega:
        _mega(r)
    elif environ.read(r, "SGLANG_MOE_NVFP4_DISPATCH"):
        raise invalid(
            "Muse Spark --enable-layernorm-sp requires SGLANG_MOE_NVFP4_DISPATCH=0 so FlashInfer A2A transports BF16 "
            "activations and sizes its workspace for the BF16 payload."
        )


def _layout(r: Resolution, arch: str, *, mega: bool) -> None:
    args, newest = r.args, r.since(0, 5, 23)
    if mega and arch != _MUSE:
        raise invalid("--enable-megamoe-for-layernorm-sp supports only Muse Spark.")
    supported = _SUPPORTED if newest else [name for name in _SUPPORTED if name != _MUSE]
    if arch not in supported:
        raise invalid(f"--enable-layernorm-sp is only supported for {supported}; got {arch}.")
    if args.tp_size <= 1:
        raise invalid(
            "--enable-layernorm-sp requires tp_size > 1: there is no sequence to shard across a single TP rank."
        )
    if arch == _MUSE:
        _muse(args, mega=mega)
    if attn_dp_enabled(args):
        dp = "attention DP" if r.since(0, 5, 22) else "--enable-dp-attention"
        raise invalid(
            f"--enable-layernorm-sp is not compatible with {dp}: SP shards the sequence across the full TP "
            "group, "
            "which under DP attention spans data-parallel groups holding different sequences."
        )
    if args.speculative_algorithm is not None and not (arch == _MUSE and args.speculative_algorithm == "DFLASH"):
        if not newest:
            raise invalid(
                "--enable-layernorm-sp is not compatible with speculative decoding (EAGLE/EAGLE3): the captured aux "
                "hidden states would be sequence-sharded."
            )
        raise invalid(
            "--enable-layernorm-sp supports speculative decoding only with Muse Spark DFLASH: other "
            "models/algorithms do "
            "not gather the sequence-sharded auxiliary hidden states."
        )
    if args.pp_size > 1 and r.since(0, 5, 22):
        raise invalid(
            "--enable-layernorm-sp is not compatible with pipeline parallelism: only the first rank's stack starts the "
            "sequence-sharded region, so the next rank would receive a stream it does not expect."
        )


def _muse(args: Any, *, mega: bool) -> None:
    if (args.tp_size, args.ep_size) not in ((4, 4), (8, 8)):
        raise invalid(
            f"Muse Spark --enable-layernorm-sp requires TP4/EP4 or TP8/EP8; got TP{args.tp_size}/EP{args.ep_size}."
        )
    if args.quantization != "modelopt_fp4" and not (args.quantization is None and mega):
        raise invalid(
            "Muse Spark --enable-layernorm-sp requires serialized NVFP4 weights with --quantization modelopt_fp4, "
            "or BF16 "
            "weights with --enable-megamoe-for-layernorm-sp."
        )
    if mega and args.moe_a2a_backend not in ("none", "flashinfer"):
        raise invalid(
            "Muse MegaMoE prefill requires --moe-a2a-backend none or flashinfer; MegaMoE performs its own "
            "dispatch/combine and decode uses all-reduce."
        )
    if not mega and args.moe_a2a_backend != "flashinfer":
        raise invalid("Muse Spark --enable-layernorm-sp requires --moe-a2a-backend flashinfer.")
    if args.moe_runner_backend != "flashinfer_trtllm":
        raise invalid("Muse Spark --enable-layernorm-sp requires --moe-runner-backend flashinfer_trtllm.")


def _mega(r: Resolution) -> None:
    args, state = r.args, r.graph["prefill"]
    if args.enable_mixed_chunk:
        raise invalid(
            "--enable-megamoe-for-layernorm-sp is incompatible with --enable-mixed-chunk: mixed batches bypass SP "
            "prefill."
        )
    chunk = args.chunked_prefill_size
    budget = chunk if chunk > 0 else args.max_prefill_tokens
    capacity = environ.read(r, _CAPACITY)
    if capacity <= 0 or budget <= 0:
        raise invalid("Muse MegaMoE requires positive prefill and per-rank token budgets.")
    share = -(-budget // args.tp_size)
    if share > capacity:
        raise invalid(
            f"Muse MegaMoE needs {share} tokens per rank, exceeding capacity {capacity}; increase {_CAPACITY} or "
            "reduce "
            "--chunked-prefill-size."
        )
    if state.backend != "breakable":
        r.set_graph("prefill", "backend", "disabled", "Muse MegaMoE captures prefill only in breakable graphs")
        return
    if chunk <= 0:
        raise invalid(
            "Muse MegaMoE breakable prefill requires a positive --chunked-prefill-size to bound SP workspace growth."
        )
    if not state.bs or max(state.bs) < chunk:
        raise invalid(
            "Muse MegaMoE breakable prefill requires the largest prefill capture bucket to cover "
            "--chunked-prefill-size; a larger eager prefill could replace captured SP workspaces."
        )
