"""DeepSeek V3 and its kin after their override: DSA's KV cache and kernels, context parallelism, MoE quantization.

Source: SGLang 0.5.23, ``arg_groups/model_hook.py`` and ``arg_groups/overrides.py`` (``_dsa_kv_cache_dtype_default``,
``_dsa_split_backend_resolution``, ``_deepseek_moe_quant_resolution``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.sglang import environ
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.graph.prefill_cp import supports_breakable_under_cp
from engine.sglang.steps.models import dsa

ARCHITECTURES = frozenset(
    {
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "KimiK25ForConditionalGeneration",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "Glm5NextForConditionalGeneration",
        "HYV4ForCausalLM",
        "HYV4ForCausalLMNextN",
        "Dots3NoteForCausalLM",
    }
)
_LONGCAT = "LongcatFlashForCausalLM"


def applies(r: Resolution) -> bool:
    """Whether the model is one of the family; LongCat-Flash is since 0.5.16."""
    return r.model.arch in ARCHITECTURES or (r.model.arch == _LONGCAT and r.since(0, 5, 16))


def run(r: Resolution) -> None:
    """Apply the family's hooks."""
    if r.model.is_deepseek_dsa:
        _sparse(r)
    elif r.args.enable_prefill_cp and r.model.use_mla:
        r.set_graph("prefill", "backend", "disabled", "MLA's context parallelism does not capture prefill")
    _moe_quantization(r)


def _sparse(r: Resolution) -> None:
    args = r.args
    name = "SGLANG_DSA_PREFILL_DENSE_ATTN_KV_LEN_THRESHOLD"
    if environ.is_set(r, name):
        r.warn(
            f"WARNING: Dense attention kv len threshold is manually set to {environ.read(r, name)} for DSA. Caution: "
            "This may cause performance regression if the threshold is larger than the index topk of model."
        )
    else:
        environ.put(r, name, r.model.hf.get("index_topk"))
        r.warn(
            f"WARNING: Set dense attention kv len threshold to model index_topk={r.model.hf.get('index_topk')} for "
            "DeepSeek with DSA."
        )
    _two_batch_overlap(r)
    captured = r.graph["prefill"].backend == "breakable" and r.since(0, 5, 23) and supports_breakable_under_cp(r)
    if args.enable_prefill_cp and not captured:
        r.set_graph("prefill", "backend", "disabled", "DSA's context parallelism does not capture this prefill graph")
    elif not args.enable_prefill_cp:
        shards = max(1, args.tp_size // args.attn_cp_size // args.attn_dp_size)
        if shards > 1:
            r.warn(
                f"WARNING: DSA with TP mode is active, attn_dp_size={args.attn_dp_size}, tp_size={args.tp_size}, "
                f"attn_tp_size={shards}, attention weights will be sharded across {shards} ranks."
            )
    dsa.kv_cache_dtype(r)
    dsa.split_backends(r)
    if args.enable_prefill_cp and args.disaggregation_mode == "decode":
        raise Refusal(
            "AssertionError",
            "CP is only supported for prefill when PD disaggregation, please remove --enable-prefill-cp.",
        )
    if args.enable_dsa_cache_layer_split:
        _layer_split(r)


def _two_batch_overlap(r: Resolution) -> None:
    if not r.args.enable_two_batch_overlap:
        return
    hf = r.model.hf
    freq = hf.get("index_topk_freq", 1) or 1
    pattern, types = hf.get("index_topk_pattern"), hf.get("indexer_types")
    shared = freq > 1 or (pattern is not None and "S" in pattern)
    if not r.since(0, 5, 20):
        if shared:
            raise Refusal(
                "ValueError",
                "--enable-two-batch-overlap is not supported with DSA index-topk sharing (index_topk_freq > 1 or an "
                "index_topk_pattern containing shared layers): the TBO op path does not propagate topk indices across "
                "layers, so shared layers would run sparse attention without indices.",
            )
        return
    if shared or (types is not None and "shared" in types):
        raise Refusal(
            "ValueError",
            "--enable-two-batch-overlap is not supported with DSA index-topk sharing: the TBO op path does not "
            "propagate topk indices across layers, so shared layers would run sparse attention without indices. Got "
            f"index_topk_freq={freq!r}, index_topk_pattern={pattern!r}, and indexer_types={types!r}.",
        )


def _layer_split(r: Resolution) -> None:
    args = r.args
    if args.disaggregation_mode == "decode":
        raise Refusal(
            "ValueError",
            "--enable-dsa-cache-layer-split is not supported on decode workers. This flag is a prefill-CP "
            "optimization; decode receives full cache shards through PD transfer.",
        )
    if args.disaggregation_mode != "prefill":
        raise Refusal(
            "ValueError",
            "--enable-dsa-cache-layer-split is only supported on PD prefill workers. Non-PD workers also run decode "
            "and require ordinary local decode cache semantics.",
        )
    legacy = (
        ""
        if r.since(0, 5, 20)
        else " (or legacy --enable-nsa-prefill-context-parallel with --nsa-prefill-cp-mode round-robin-split)"
    )
    if not args.enable_prefill_cp or args.cp_strategy != "interleave":
        raise Refusal(
            "ValueError",
            f"--enable-dsa-cache-layer-split requires --enable-prefill-cp and --cp-strategy interleave{legacy}.",
        )
    if args.disaggregation_transfer_backend != "mooncake":
        raise Refusal(
            "ValueError",
            "--enable-dsa-cache-layer-split currently only supports the mooncake transfer backend (mooncake / "
            "mooncake_tcp). Got --disaggregation-transfer-backend "
            f"{args.disaggregation_transfer_backend!r}. mori/nixl support will be added later by the community.",
        )
    if args.pp_size > 1:
        raise Refusal(
            "ValueError",
            "--enable-dsa-cache-layer-split is not supported with pipeline parallelism (pp_size > 1) yet. It requires "
            "prefill context parallelism, and CP + PP has not been validated for this feature.",
        )


def _moe_quantization(r: Resolution) -> None:
    if not platform_of(r.hardware).is_sm100:
        return
    args, arch = r.args, r.model.arch
    config: Mapping[str, Any] = r.model.hf.get("quantization_config") or {}
    method = config.get("quant_method")
    weights = config.get("config_groups", {}).get("group_0", {}).get("weights", {})
    int4 = (
        method == "compressed-tensors"
        and weights.get("num_bits") == 4
        and weights.get("group_size") == 32
        and weights.get("strategy") == "group"
        and weights.get("type") == "int"
    )
    quantization = args.quantization
    # An undeclared FP8 checkpoint (DeepSeek V3 without quantization_config) shows in the weights' headers only.
    unread = method is None and arch == "DeepseekV3ForCausalLM"
    if quantization is None and not args._quantization_explicitly_unset and not unread:
        quantization = method
        if method is not None:
            r.set("quantization", method, "the checkpoint's own")
    runs = quantization in ("fp8", "modelopt_fp8", "modelopt_fp4", "modelopt_mixed", None) or int4
    longcat = arch.startswith("LongcatFlash") and r.since(0, 5, 17)
    fits = args.moe_a2a_backend == "none" and args.moe_runner_backend == "auto"
    fp8_gemm = (
        arch in ("LongcatFlashForCausalLM", "LongcatFlashForCausalLMNextN")
        and args.fp8_gemm_runner_backend == "auto"
        and quantization in ("fp8", "modelopt_fp8")
        and config.get("scale_fmt") != "ue8m0"
    )
    if fits and not longcat and runs:
        r.set("moe_runner_backend", "flashinfer_trtllm", "the family's runner on SM100", layer="engine-default")
    if fp8_gemm:
        r.set(
            "fp8_gemm_runner_backend", "flashinfer_trtllm", "scales that are no powers of two", layer="engine-default"
        )
