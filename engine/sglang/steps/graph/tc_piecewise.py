"""The torch.compile prefill graph in pieces, which 0.5.22 removed: who gets it by default, who loses it.

Source: SGLang 0.5.21, ``arg_groups/cuda_graph_hook.py`` (``disable_tc_piecewise_cudagraph_if_incompatible``).
"""

from __future__ import annotations

from collections.abc import Callable

from engine.sglang.derived import attention_backends, attn_dp_enabled
from engine.sglang.resolution import Resolution

BACKEND = "tc_piecewise"


def prefer(r: Resolution) -> None:
    """Multimodal decoders that were validated with it, and not with the breakable graph, take it by default."""
    if BACKEND not in r.release.graph.backends["prefill"] or r.graph["prefill"].backend != "breakable":
        return
    if not r.since(0, 5, 16):
        return
    model = r.model
    if not model.is_multimodal_piecewise_cuda_graph_supported:
        return
    breakable = model.is_multimodal_breakable_cuda_graph_supported or attention_backends(r.args)[0] == "trtllm_mla"
    if not r.since(0, 5, 18) or not breakable:
        r.set_graph("prefill", "backend", BACKEND, "this multimodal decoder was validated with it")


def drop_incompatible(r: Resolution) -> None:
    """Switch it off where nobody asked for it by name and the engine deems it incompatible; it says nothing."""
    for name, applies in _RULES:
        if applies(r):
            r.set_graph("prefill", "backend", "disabled", f"the {BACKEND} graph is incompatible with {name}")
            return


def _gguf(r: Resolution) -> bool:
    return bool(r.args.load_format == "gguf" or r.args.quantization == "gguf" or r.args.model_path.endswith(".gguf"))


def _multimodal(r: Resolution) -> bool:
    return bool(r.model.is_multimodal) and not r.model.is_multimodal_piecewise_cuda_graph_supported


_RULES: tuple[tuple[str, Callable[[Resolution], bool]], ...] = (
    ("this architecture", lambda r: bool(r.model.is_piecewise_cuda_graph_disabled_model)),
    ("DP attention", lambda r: attn_dp_enabled(r.args)),
    ("full torch.compile mode", lambda r: bool(r.args.enable_torch_compile)),
    ("pipeline parallelism", lambda r: bool(r.args.pp_size > 1)),
    ("a MoE all-to-all backend", lambda r: bool(r.args.moe_a2a_backend != "none")),
    ("LoRA", lambda r: bool(r.args.lora_paths) or bool(r.args.enable_lora)),
    ("a multimodal model", _multimodal),
    ("GGUF quantization", _gguf),
    ("a diffusion language model", lambda r: r.args.dllm_algorithm is not None),
    (
        "CPU offload or a hierarchical cache",
        lambda r: bool(r.args.cpu_offload_gb > 0 or r.args.enable_hierarchical_cache),
    ),
    ("deterministic inference", lambda r: bool(r.args.enable_deterministic_inference)),
    ("PD disaggregation", lambda r: bool(r.args.disaggregation_mode != "null")),
    ("symmetric memory", lambda r: bool(r.args.enable_symm_mem)),
    (
        "the expert distribution recorder",
        lambda r: bool(r.args.enable_eplb) or r.args.expert_distribution_recorder_mode is not None,
    ),
    ("context parallelism", lambda r: bool(r.args.attn_cp_size > 1)),
    ("DSA prefill context parallelism", lambda r: bool(r.args.__dict__.get("enable_dsa_prefill_context_parallel"))),
    ("CUDA graph debug mode", lambda r: bool(r.args.debug_cuda_graph)),
    ("decode context parallelism", lambda r: bool(r.args.dcp_size > 1) and r.since(0, 5, 16)),
)
