"""Every step of the resolution, in the engine's order.

Read it from top to bottom: that is what a launch goes through. A step knows the engine hook that it follows, and the
releases that take it where not all do. Source of the order: SGLang 0.5.23, ``arg_groups/pipeline.py``.

The pipeline's other hooks have no step, because no graph, no reported argument and no refusal on a CUDA machine depends
on them: crash dumps, debugging, the grammar backend, NCCL's warm-up, other vendors' platforms, expert metrics,
prefill delays, collective preferences, object stores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from engine.sglang.resolution import Resolution, Step, Version
from engine.sglang.steps import (
    cpu_device,
    deprecated,
    dllm,
    load_format,
    log_level,
    mamba,
    missing_defaults,
    page_size,
    sampling,
)
from engine.sglang.steps.attention import compatibility as attention_compatibility
from engine.sglang.steps.attention import deterministic, gdn_replay, scoring
from engine.sglang.steps.attention import linear as linear_attention
from engine.sglang.steps.cache import hierarchical
from engine.sglang.steps.disaggregation import encoder
from engine.sglang.steps.disaggregation import roles as pd_roles
from engine.sglang.steps.graph import (
    compatibility,
    deepep,
    deepseek_trtllm_mla,
    glm5,
    kimi_symm_mem,
    max_context,
    model_defaults,
    precedence,
    prefill_cp,
    roles,
    validation,
)
from engine.sglang.steps.kv import cache as kv_cache
from engine.sglang.steps.kv import fp4, nvfp4_prefill, prefill_only, unified, unified_dense
from engine.sglang.steps.memory import capacity, fraction, kv_sharding, offload
from engine.sglang.steps.models import adjustments, capability
from engine.sglang.steps.moe import (
    all_to_all,
    cutedsl_a2a_budget,
    deepep_v2,
    flashinfer_a2a,
    kernel_config,
    layernorm_sp,
    marlin_lora,
    mega_moe,
    mega_moe_budget,
)
from engine.sglang.steps.parallel import (
    context_parallel,
    data_parallel,
    decode_context,
    dp_attention,
    dwdp,
    elastic_ep,
    expert_balance,
    legacy_cp,
    pipeline_overlap,
    shared_experts,
)
from engine.sglang.steps.serving import (
    attention_aliases,
    aux_hidden_states,
    early,
    expert_pack,
    grpc,
    http,
    late,
    load_balance,
    muse_spark,
    watermark,
)
from engine.sglang.steps.speculative import algorithm

_ATTENTION = "arg_groups/attention_hook.py"
_KV = "arg_groups/kv_cache_hook.py"
_MAMBA = "arg_groups/mamba_hook.py"
_MODEL = "arg_groups/model_hook.py"
_OVERRIDES = "arg_groups/overrides.py"
_GRAPH = "arg_groups/cuda_graph_hook.py"
_MEMORY = "arg_groups/memory_hook.py"
_PARALLEL = "arg_groups/parallel_hook.py"
_MOE = "arg_groups/moe_hook.py"
_DISAGGREGATION = "arg_groups/pd_disaggregation_hook.py"
_HICACHE = "arg_groups/hicache_hook.py"
_SERVING = "arg_groups/serving_hook.py"
_VALIDATION = "arg_groups/validation_hook.py"

ORDER: tuple[Step, ...] = (
    Step(name="log-level", run=log_level.run, source="server_args.py: prepare_server_args"),
    Step(
        name="dp-attention",
        run=dp_attention.run,
        source=f"{_PARALLEL}: handle_deprecated_dp_attention",
        since=(0, 5, 22),
    ),
    Step(
        name="dp-attention-widths",
        run=dp_attention.widths,
        source="runtime_context.py: derive_attention_widths",
        until=(0, 5, 21),
    ),
    Step(name="mega-moe", run=mega_moe.run, source="arg_groups/mega_moe_hook.py: handle_mega_moe"),
    Step(
        name="hidden-states-mode", run=early.hidden_states_mode, source=f"{_SERVING}: handle_return_hidden_states_mode"
    ),
    Step(name="media-domains", run=early.media_domains, source=f"{_SERVING}: handle_media_url_security"),
    Step(name="watermark", run=watermark.run, source=f"{_SERVING}: handle_watermark_config", since=(0, 5, 22)),
    Step(name="hicache-ratio", run=hierarchical.ratio, source=f"{_HICACHE}: handle_hicache_ratio_default"),
    Step(name="offload", run=offload.run, source=f"{_MEMORY}: handle_offload_compatibility"),
    Step(name="decode-interval", run=early.decode_interval, source=f"{_VALIDATION}: validate_prefill_decode_interval"),
    Step(name="response-store", run=early.response_store, source=f"{_VALIDATION}: validate_response_store"),
    Step(
        name="sampling-mask",
        run=early.sampling_mask,
        source=f"{_VALIDATION}: validate_sampling_mask_max_tokens",
        since=(0, 5, 20),
    ),
    Step(
        name="aux-hidden-states",
        run=aux_hidden_states.run,
        source=f"{_VALIDATION}: handle_aux_hidden_state_capture",
        since=(0, 5, 23),
    ),
    Step(
        name="hardware-runtime",
        run=early.hardware_runtime,
        source="arg_groups/platform_hook.py: handle_hardware_runtime_validation",
        since=(0, 5, 19),
    ),
    Step(
        name="muse-spark",
        run=muse_spark.run,
        source="arg_groups/muse_spark_hook.py: apply_muse_spark_env_defaults",
        since=(0, 5, 23),
    ),
    Step(name="multimodal", run=early.multimodal, source=f"{_SERVING}: handle_multimodal"),
    Step(name="http", run=http.run, source=f"{_SERVING}: handle_ssl_validation"),
    Step(name="transcription", run=early.transcription, source=f"{_SERVING}: handle_asr_validation"),
    Step(name="deprecated", run=deprecated.run, source="arg_groups/serving_hook.py: handle_deprecated_args"),
    Step(name="attention-aliases", run=attention_aliases.run, source=f"{_SERVING}: handle_deprecated_args"),
    Step(name="grpc", run=grpc.run, source=f"{_SERVING}: handle_deprecated_args"),
    Step(
        name="missing-defaults",
        run=missing_defaults.run,
        source="arg_groups/serving_hook.py: handle_missing_default_values",
    ),
    Step(name="expert-pack", run=expert_pack.run, source="arg_groups/expert_pack_hook.py: handle_expert_pack"),
    Step(name="pd-roles", run=pd_roles.run, source=f"{_DISAGGREGATION}: handle_pd_disaggregation"),
    Step(name="legacy-cp", run=legacy_cp.run, source=f"{_PARALLEL}: handle_legacy_cp_arguments", until=(0, 5, 19)),
    Step(name="prefill-only", run=prefill_only.arguments, source=f"{_KV}: validate_prefill_only_disable_kv_cache_args"),
    Step(
        name="decode-context",
        run=decode_context.run,
        source=f"{_PARALLEL}: handle_decode_context_parallelism",
        since=(0, 5, 15),
    ),
    Step(
        name="graph-inkling-default",
        run=model_defaults.inkling,
        source=f"{_GRAPH}: apply_inkling_prefill_cuda_graph_default",
        since=(0, 5, 16),
    ),
    Step(
        name="graph-muse-glimmer-default",
        run=model_defaults.muse_glimmer,
        source=f"{_GRAPH}: apply_muse_glimmer_prefill_cuda_graph_max_bs_default",
    ),
    Step(name="dwdp", run=dwdp.run, source=f"{_PARALLEL}: handle_dwdp"),
    Step(name="graph-precedence", run=precedence.run, source=f"{_GRAPH}: parse_cuda_graph_config"),
    Step(
        name="graph-kimi-symm-mem",
        run=kimi_symm_mem.run,
        source="arg_groups/kimi_k3_hook.py: disable_kimi_k3_symm_mem",
        since=(0, 5, 17),
        until=(0, 5, 18),
    ),
    Step(name="graph-compatibility", run=compatibility.run, source=f"{_GRAPH}: apply_cuda_graph_compatibility"),
    Step(name="graph-deepep", run=deepep.run, source=f"{_GRAPH}: apply_deepep_adjustments", since=(0, 5, 17)),
    Step(
        name="graph-roles",
        run=roles.run,
        source=f"{_GRAPH}: apply_cuda_graph_disaggregation_roles",
        since=(0, 5, 16),
    ),
    Step(name="graph-validation", run=validation.run, source=f"{_GRAPH}: validate_cuda_graph_config"),
    Step(
        name="glm5-chunk",
        run=glm5.chunk,
        source=f"{_GRAPH}: apply_glm5_chunked_prefill_default",
        since=(0, 5, 20),
        until=(0, 5, 21),
    ),
    Step(name="cpu-device", run=cpu_device.run, source="arg_groups/platform_hook.py: handle_cpu_backends"),
    Step(name="capture-sizes", run=capacity.run, source=f"{_MEMORY}: handle_gpu_memory_settings"),
    Step(name="memory-fraction", run=fraction.run, source=f"{_MEMORY}: handle_gpu_memory_settings"),
    Step(name="model", run=adjustments.run, source=f"{_MODEL}: handle_model_specific_adjustments"),
    Step(name="offload-again", run=offload.run, source=f"{_MEMORY}: handle_offload_compatibility"),
    Step(name="sampling", run=sampling.run, source=f"{_OVERRIDES}: _sampling_backend_default"),
    Step(name="deterministic", run=deterministic.run, source=f"{_ATTENTION}: handle_deterministic_inference"),
    Step(
        name="nvfp4-prefill",
        run=nvfp4_prefill.run,
        source=f"{_KV}: handle_nvfp4_prefill_kv_dequant_dtype",
        since=(0, 5, 21),
    ),
    Step(
        name="attention",
        run=attention_compatibility.run,
        source=f"{_ATTENTION}: handle_attention_backend_compatibility",
    ),
    Step(
        name="cpu-attention-fallback",
        run=cpu_device.fallback,
        source="arg_groups/overrides.py: _attention_backend_platform_fallbacks",
    ),
    Step(
        name="graph-deepseek-trtllm-mla",
        run=deepseek_trtllm_mla.run,
        source=f"{_GRAPH}: disable_prefill_cuda_graph_for_deepseek_trtllm_mla",
        since=(0, 5, 15),
    ),
    Step(name="mamba-backend", run=mamba.backend, source=f"{_MAMBA}: handle_mamba_backend"),
    Step(name="mamba-checkpoint", run=mamba.int8_checkpoint, source=f"{_MAMBA}: handle_int8_mamba_checkpoint"),
    Step(name="linear-attention", run=linear_attention.run, source=f"{_ATTENTION}: handle_linear_attn_backend"),
    Step(
        name="glm5-capture-sizes",
        run=glm5.capture_sizes,
        source=f"{_GRAPH}: apply_glm5_prefill_cuda_graph_policy",
        since=(0, 5, 20),
        until=(0, 5, 21),
    ),
    Step(name="kv-fp4", run=fp4.run, source=f"{_KV}: handle_kv4_compatibility"),
    Step(name="kv-mxfp8", run=fp4.mxfp8, source=f"{_KV}: handle_mxfp8_kv_cache_compatibility", since=(0, 5, 16)),
    Step(name="page-size", run=page_size.run, source=f"{_OVERRIDES}: _page_size_default"),
    Step(name="multi-item-scoring", run=scoring.run, source=f"{_ATTENTION}: handle_multi_item_scoring"),
    Step(name="prefill-only-backend", run=prefill_only.backend, source=f"{_KV}: handle_prefill_only_disable_kv_cache"),
    Step(name="hicache", run=hierarchical.run, source=f"{_HICACHE}: handle_hicache"),
    Step(name="data-parallel", run=data_parallel.run, source=f"{_PARALLEL}: handle_data_parallelism"),
    Step(name="load-balance", run=load_balance.run, source=f"{_SERVING}: handle_load_balance_method"),
    Step(
        name="legacy-cp-again", run=legacy_cp.run, source=f"{_PARALLEL}: handle_legacy_cp_arguments", until=(0, 5, 19)
    ),
    Step(name="context-parallel", run=context_parallel.run, source=f"{_PARALLEL}: handle_context_parallelism"),
    Step(
        name="graph-prefill-cp",
        run=prefill_cp.run,
        source=f"{_GRAPH}: apply_prefill_cp_cuda_graph_default",
        since=(0, 5, 23),
    ),
    Step(
        name="kv-sharding",
        run=kv_sharding.run,
        source="arg_groups/kv_shard_hook.py: handle_kv_cache_sharding",
        since=(0, 5, 22),
    ),
    Step(name="moe-kernels", run=kernel_config.run, source=f"{_MOE}: handle_moe_kernel_config"),
    Step(name="moe-all-to-all", run=all_to_all.run, source=f"{_MOE}: handle_a2a_moe"),
    Step(name="shared-experts", run=shared_experts.run, source=f"{_PARALLEL}: handle_shared_experts_tp"),
    Step(name="expert-balance", run=expert_balance.run, source=f"{_PARALLEL}: handle_eplb_and_dispatch"),
    Step(
        name="expert-metrics",
        run=expert_balance.retired_metric,
        source=f"{_PARALLEL}: handle_expert_distribution_metrics",
        since=(0, 5, 18),
        until=(0, 5, 20),
    ),
    Step(name="elastic-ep", run=elastic_ep.run, source=f"{_PARALLEL}: handle_elastic_ep"),
    Step(name="marlin-lora", run=marlin_lora.run, source=f"{_VALIDATION}: validate_experimental_sgl_marlin"),
    Step(
        name="pipeline-overlap",
        run=pipeline_overlap.run,
        source="arg_groups/overrides.py: _pipeline_parallel_overlap_disable",
    ),
    Step(name="speculative", run=algorithm.run, source="arg_groups/speculative_hook.py: handle_speculative_decoding"),
    Step(
        name="gdn-replay-ring",
        run=gdn_replay.ring,
        source="server_args.py: _validate_gdn_replayssm_spec_ring",
        since=(0, 5, 16),
        until=(0, 5, 16),
    ),
    Step(name="layernorm-sp", run=layernorm_sp.run, source="arg_groups/layernorm_sp_hook.py: handle_layernorm_sp"),
    Step(
        name="flashinfer-a2a-budget",
        run=flashinfer_a2a.budget,
        source=f"{_MOE}: validate_flashinfer_a2a_token_budget",
        since=(0, 5, 22),
    ),
    Step(
        name="cutedsl-a2a-budget",
        run=cutedsl_a2a_budget.run,
        source=f"{_MOE}: validate_cutedsl_a2a_token_budget",
        until=(0, 5, 21),
    ),
    Step(
        name="mega-moe-budget",
        run=mega_moe_budget.run,
        source="arg_groups/mega_moe_hook.py: validate_mega_moe_token_budget_for_model",
        since=(0, 5, 21),
    ),
    Step(name="load-format", run=load_format.run, source="arg_groups/model_path_hook.py: handle_load_format"),
    Step(name="encoder", run=encoder.run, source=f"{_DISAGGREGATION}: handle_encoder_disaggregation"),
    Step(name="tokenizer-batching", run=late.tokenizer_batching, source=f"{_SERVING}: handle_tokenizer_batching"),
    Step(name="environment", run=late.environment, source=f"{_SERVING}: handle_environment_variables"),
    Step(name="kv-cache", run=kv_cache.run, source=f"{_KV}: handle_cache_compatibility"),
    Step(name="page-major", run=unified.page_major, source=f"{_KV}: handle_page_major_kv_layout", since=(0, 5, 19)),
    Step(
        name="page-major-dense",
        run=unified_dense.page_major,
        source="server_args.py: _handle_page_major_kv_layout",
        since=(0, 5, 15),
        until=(0, 5, 18),
    ),
    Step(name="unified-memory", run=unified.run, source=f"{_KV}: handle_unified_memory_pool", since=(0, 5, 19)),
    Step(
        name="unified-memory-dense",
        run=unified_dense.run,
        source="server_args.py: _handle_unified_memory_pool",
        since=(0, 5, 15),
        until=(0, 5, 18),
    ),
    Step(name="dllm", run=dllm.run, source="arg_groups/dllm_hook.py: handle_dllm_inference"),
    Step(name="other-validations", run=late.other, source=f"{_SERVING}: handle_other_validations"),
    Step(
        name="capability",
        run=capability.run,
        source=f"{_MODEL}: handle_model_capability_adjustments",
        since=(0, 5, 16),
    ),
    Step(
        name="kernel-plugins",
        run=late.kernel_plugins,
        source="kernel_plugins/nvidia/binding.py: handle_nvidia_megakernel",
        since=(0, 5, 23),
    ),
    Step(
        name="graph-max-context",
        run=max_context.run,
        source=f"{_GRAPH}: finalize_cuda_graph_prefill_max_context",
        since=(0, 5, 21),
    ),
    Step(
        name="kv-sharding-again",
        run=kv_sharding.run,
        source="arg_groups/kv_shard_hook.py: handle_kv_cache_sharding",
        since=(0, 5, 22),
    ),
    Step(name="deepep-v2-draft", run=deepep_v2.draft, source=f"{_MOE}: validate_deepep_v2_speculative_draft"),
    Step(name="deepep-v2-budget", run=deepep_v2.budget, source=f"{_MOE}: validate_deepep_v2_dispatch_token_budget"),
)


@cache
def steps_of(version: Version) -> tuple[Step, ...]:
    """The steps that the release of that version takes."""
    return tuple(step for step in ORDER if step.applies(version))


@cache
def runs_of(version: Version) -> tuple[tuple[Step, Callable[[Resolution], None]], ...]:
    """The same with the function of each beside it, so that a launch does not look it up a hundred times."""
    return tuple((step, step.run) for step in steps_of(version))
