"""Checks after every backend is chosen: tokenizer batching, feature transport, dumps, plugins."""

from __future__ import annotations

import json

from engine.launch import PHASES
from engine.sglang import environ
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution, Version
from engine.sglang.steps.refusals import invalid
from engine.sglang.versioned import FIRST, at

_FP4_INDEXER_GPUS: tuple[tuple[Version, str], ...] = (
    ((0, 5, 20), "SM100, SM120, or gfx95 GPUs with FP4"),
    ((0, 5, 17), "SM100 or SM120 GPUs with DeepGEMM FP4"),
    (FIRST, "SM100 GPUs with DeepGEMM FP4"),
)
_PLUGIN = "nvidia_megakernel"


def tokenizer_batching(r: Resolution) -> None:
    """One way of batching, not two."""
    if r.args.enable_tokenizer_batch_encode and r.args.enable_dynamic_batch_tokenizer:
        raise invalid(
            "Cannot enable both --enable-tokenizer-batch-encode and --enable-dynamic-batch-tokenizer. Please choose "
            "one "
            "tokenizer batching approach."
        )


def environment(r: Resolution) -> None:
    """Transport of multimodal features, and the FP4 indexer's GPUs."""
    args = r.args
    if r.since(0, 5, 16):
        _feature_transport(r)
    if args.debug_cuda_graph:
        environ.put(r, "SGLANG_USE_BREAKABLE_CUDA_GRAPH", 1)
        r.warn(
            "WARNING: Debug mode for CUDA graph is enabled via breakable CUDA graph. All operations will run eagerly "
            "through the graph capture/replay path."
        )
    if args.enable_deepseek_v4_fp4_indexer:
        gpu = platform_of(r.hardware)
        if not (gpu.is_sm100 or (gpu.is_sm120 and r.since(0, 5, 17))):
            gpus = at(_FP4_INDEXER_GPUS, r.release.version)
            raise invalid(f"--enable-deepseek-v4-fp4-indexer requires {gpus} indexer support.")


def _feature_transport(r: Resolution) -> None:
    args = r.args
    transport = args.mm_feature_transport
    if getattr(args, "keep_mm_feature_on_device", False):  # until 0.5.20
        if transport not in (None, "cuda_ipc"):
            raise invalid(
                f"--keep-mm-feature-on-device conflicts with --mm-feature-transport={transport}. Use only "
                "--mm-feature-transport=cuda_ipc."
            )
        transport = "cuda_ipc"
        r.warn("WARNING: --keep-mm-feature-on-device is deprecated; using --mm-feature-transport=cuda_ipc instead.")
    if transport is None and environ.is_set(r, "SGLANG_USE_CUDA_IPC_TRANSPORT"):
        transport = "cuda_ipc" if environ.read(r, "SGLANG_USE_CUDA_IPC_TRANSPORT") else "cpu"
    if transport is not None and args.encoder_only:
        transport = "cpu"
    if transport == "cuda_vmm" and args.pp_size != 1:
        raise invalid("--mm-feature-transport=cuda_vmm does not support pipeline parallelism.")
    if transport == "cuda_vmm" and not r.since(0, 5, 20) and environ.read(r, "SGLANG_RUST_SERVER"):
        raise invalid("--mm-feature-transport=cuda_vmm is not supported with SGLANG_RUST_SERVER.")
    if transport == "cuda_ipc" and args.nnodes != 1:
        raise invalid("--mm-feature-transport=cuda_ipc only supports a single node.")


def other(r: Resolution) -> None:
    """Optimistic prefill; tensor dumps, which run eagerly; limits and sampling parameters."""
    args = r.args
    if args.default_chat_template_kwargs is not None and not isinstance(args.default_chat_template_kwargs, dict):
        raise invalid("--default-chat-template-kwargs must decode to a JSON object")
    _optimistic_prefill(r)
    if args.debug_tensor_dump_output_folder is not None:
        r.warn("WARNING: Cuda graph and server warmup are disabled because of using tensor dump mode")
        _eager(r, "tensors are dumped")
    if args.msprobe_dump_config is not None:
        r.warn(
            "WARNING: When msProbe is enabled, cuda graph is disabled because msProbe only supports dump in eager "
            "mode, "
            "warmup is disabled(skip_server_warmup=True) because there is no need to dump data for this stage."
        )
        _eager(r, "msProbe dumps in eager mode only")
    _request_limits(r)


def _optimistic_prefill(r: Resolution) -> None:
    args = r.args
    if args.disaggregation_mode != "prefill":
        return
    if args.optimistic_prefill_attempts > 0:
        policy, storage = args.hicache_write_policy, args.hicache_storage_backend
        host_only = storage is None and policy in ("write_back", "write_through")
        staged = storage is not None and args.hicache_host_memory_mode == "buffer_only" and policy == "write_through"
        if args.pp_size > 1:
            r.warn("WARNING: Optimistic prefill does not support pp_size > 1")
            r.set("optimistic_prefill_attempts", 0, "pipeline parallelism")
        elif args.enable_hierarchical_cache and not (host_only or staged):
            r.warn(
                "WARNING: Optimistic prefill supports L2 write-back/write-through or L3 buffer-only write-through "
                "hierarchical cache"
            )
            r.set("optimistic_prefill_attempts", 0, "this hierarchical cache")
    if args.disaggregation_decode_allocation_policy == "prefill_complete" and args.optimistic_prefill_attempts <= 0:
        raise invalid(
            "prefill_complete requires optimistic prefill, but the resolved model/cache configuration disabled it."
        )


def _eager(r: Resolution, why: str) -> None:
    for phase in PHASES:
        r.set_graph(phase, "backend", "disabled", why)
    r.set("skip_server_warmup", True, why)


def _request_limits(r: Resolution) -> None:
    args = r.args
    limits = args.limit_mm_data_per_request
    if isinstance(limits, str) and limits:
        limits = json.loads(limits)
    for modality in limits if isinstance(limits, dict) else ():
        if modality not in ("image", "video", "audio"):
            raise invalid(
                f"Invalid modality '{modality}' in --limit-mm-data-per-request.Allowed modalities are: "
                "['image', 'video', 'audio']"
            )
    sampling = args.preferred_sampling_params
    if isinstance(sampling, str) and sampling:
        sampling = json.loads(sampling)
    if sampling and not isinstance(sampling, str | list | dict):
        raise Refusal("TypeError", f"argument of type '{type(sampling).__name__}' is not iterable")
    if sampling and "watermark" in sampling and r.since(0, 5, 22):
        raise invalid("watermark is not supported in --preferred-sampling-params")


def kernel_plugins(r: Resolution) -> None:
    """Whole-step kernels come from plugins, which the engine's own images do not hold."""
    args = r.args
    if args.enable_nvidia_megakernel:
        missing = (
            f"the {_PLUGIN!r} plugin is not installed; install sgl-nvidia-mega "
            "(https://github.com/sgl-project/sgl-nvidia-mega)"
        )
        reasons = [missing]
        if args.enable_amd_monokernel:
            reasons.append("--enable-amd-monokernel is also set; use one of the two")
        raise invalid("--enable-nvidia-megakernel cannot run this setup:\n  - " + "\n  - ".join(reasons))
    if args.enable_amd_monokernel:
        raise invalid("--enable-amd-monokernel cannot run this setup:\n  - it needs an AMD GPU")
