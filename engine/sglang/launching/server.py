"""Widths, ids, workers, and what only one device or port has."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, require

_OBJECT_STORES = ("s3://", "gs://", "az://")


def widths(r: Resolution) -> None:
    """Nodes, micro-batches, and graphs without padding under torch.compile."""
    args = r.args
    if args.ep_join_mode != "scale":
        require((args.tp_size * args.pp_size) % args.nnodes == 0, "tp_size must be divisible by number of nodes")
    micro = args.pp_max_micro_batch_size
    require(
        micro is None or micro >= 1,
        f"pp_max_micro_batch_size must be a positive integer or None (for auto-compute). Got: {micro}",
    )
    require(
        not (args.disable_cuda_graph_padding and args.enable_torch_compile),
        "--disable-cuda-graph-padding is incompatible with --enable-torch-compile. With padding disabled, every "
        "distinct batch size gets its own torch.compile + Triton autotune cycle (O(max_batch_size) compilations) "
        "instead of the small fixed set of padded bucket sizes, causing engine initialisation to stall for many "
        "minutes. Remove --disable-cuda-graph-padding or --enable-torch-compile.",
    )


def ids(r: Resolution) -> None:
    """Replicas over nodes, GPU ids, the dense layers' width, the served name."""
    args = r.args
    require(
        not (args.dp_size > 1 and args.nnodes != 1),
        "multi-node data-parallel replicas are not supported; use attention DP (--attn-dp-size) across nodes"
        if r.since(0, 5, 22)
        else "multi-node data parallel is not supported unless dp attention!",
    )
    require(args.base_gpu_id >= 0, "base_gpu_id must be non-negative")
    require(args.gpu_id_step >= 1, "gpu_id_step must be positive")
    require(
        args.moe_dense_tp_size in (None, 1, args.tp_size),
        "moe_dense_tp_size only supports None, 1, or tp_size currently",
    )
    name = str(args.served_model_name)
    if not name.lower().startswith(_OBJECT_STORES):
        require(
            ":" not in name,
            "served_model_name cannot contain a colon (':') character. The colon is reserved for the 'model:adapter' "
            f"syntax used in LoRA adapter specification. Invalid value: '{name}'",
        )


def workers(r: Resolution) -> None:
    """How many tokenizers and multimodal workers there are."""
    args = r.args
    require(args.tokenizer_worker_num > 0, "Tokenizer worker num must >= 1")
    require(args.detokenizer_worker_num > 0, "Detokenizer worker num must >= 1")
    require(args.mm_processor_worker_num >= 0, "Multimodal processor worker num must >= 0")
    require(args.mm_io_worker_num >= 0, "Multimodal I/O worker num must >= 0")


def rest(r: Resolution) -> None:
    """Metrics, batch overlap, communication, sampling, ports."""
    args = r.args
    require(args.schedule_conservativeness >= 0, "schedule_conservativeness must be non-negative")
    require(args.model_impl != "mindspore", "MindSpore model impl is only supported on Ascend npu.")
    if args.load_format == "instanttensor" and args.device != "cuda":
        raise invalid(
            f"InstantTensor requires a CUDA-compatible device (including CUDA and ROCm); got {args.device!r}."
        )
    if args.tokenizer_metrics_allowed_custom_labels and not args.tokenizer_metrics_custom_labels_header:
        raise invalid(
            "Please set --tokenizer-metrics-custom-labels-header when setting "
            "--tokenizer-metrics-allowed-custom-labels."
        )
    if args.export_metrics_to_file and args.export_metrics_to_file_dir is None:
        raise invalid("--export-metrics-to-file-dir is required when --export-metrics-to-file is enabled")
    named = "attention DP (--attn-dp-size)" if r.since(0, 5, 22) else "--enable-dp-attention"
    overlapped = args.enable_two_batch_overlap and args.moe_a2a_backend == "none"
    if overlapped and not r.since(0, 5, 15):
        raise invalid("When enabling two batch overlap, moe_a2a_backend cannot be 'none'.")
    if overlapped and not attn_dp_enabled(args):
        raise invalid(
            f"When enabling two batch overlap without an EP a2a backend (moe_a2a_backend='none'), {named} is required "
            "(DeepSeek-V4 non-EP DP TBO path)."
        )
    if args.enable_quant_communications:
        if args.tp_size == 1:
            raise invalid("Communications quantization is only used with tp_size != 1")
        if args.device != "npu":
            raise invalid("Communications quantization is only supported for NPU device")
    if args.sampling_backend == "intel_xpu" and args.device != "xpu":
        raise invalid(f"--sampling-backend intel_xpu requires --device xpu, got --device {args.device}")
    if not r.since(0, 5, 16):
        if environ.read(r, "SGLANG_ENABLE_GRPC") and environ.read(r, "SGLANG_GRPC_PORT") == args.port:
            raise invalid(f"SGLANG_GRPC_PORT ({args.port}) must differ from --port ({args.port})")
    elif not (args.smg_grpc_mode or args.grpc_mode) and args.grpc_port == args.port:
        raise invalid(f"--grpc-port ({args.grpc_port}) must differ from --port ({args.port})")
    if args.gc_threshold and not 1 <= len(args.gc_threshold) <= 3:
        raise invalid("When setting gc_threshold, it must contain 1 to 3 integers.")
    if args.kv_canary_sweep_interval > 0 and args.kv_canary == "none":
        raise invalid("--kv-canary-sweep-interval requires --kv-canary in {log, raise}")
