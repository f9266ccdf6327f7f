"""KV cache sharding over logical pages: where it is possible, and what it takes away from the graphs.

Source: SGLang 0.5.23, ``arg_groups/kv_shard_hook.py``. Runs twice: late adjustments can change what it depends on.
"""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attention_backends, attn_dp_enabled, gpu_memory_mib, uses_mla
from engine.sglang.resolution import Refusal, Resolution

_FLAG = "--enable-kv-cache-sharding"
_TREE_CORE = "SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND"


def run(r: Resolution) -> None:
    """Refuse what sharding excludes; round the chunk to whole pages; prefill runs eager."""
    if not r.args.enable_kv_cache_sharding:
        return
    _features(r)
    _model(r)
    _attention_backend(r)
    _transfer(r)
    _topology(r)
    _chunk(r)
    _graphs(r)


def _refuse(message: str) -> Refusal:
    return Refusal("ValueError", message)


def _features(r: Resolution) -> None:
    args = r.args
    if args.disaggregation_mode != "prefill":
        raise _refuse(
            f"{_FLAG} is only supported on PD prefill workers: a rank's pool holds only its stripe of every cached "
            "page, which is incompatible with local decode."
        )
    if args.speculative_algorithm is not None and not r.since(0, 5, 23):
        raise _refuse(f"{_FLAG} does not support speculative decoding.")
    if args.speculative_algorithm is not None and (
        args.speculative_algorithm != "EAGLE"
        or r.model.arch != "GlmMoeDsaForCausalLM"
        or r.model.num_nextn_predict_layers != 1
        or args.speculative_eagle_topk != 1
        or args.enable_multi_layer_eagle
    ):
        raise _refuse(
            "KV sharding supports speculative decoding only for GLM DSA single-layer NextN MTP with EAGLE and topk=1."
        )
    if args.dllm_algorithm is not None:
        raise _refuse(
            f"{_FLAG} does not support diffusion language models: DLLM admission bypasses the shard-scratch budget and "
            "resolves out of PD-prefill mode."
        )
    if args.radix_cache_backend is not None:
        raise _refuse(
            f"{_FLAG} requires the built-in UnifiedRadixCache with a rotation-aware UnifiedTreeCore and does not "
            f"support --radix-cache-backend={args.radix_cache_backend!r}."
        )
    if not environ.is_set(r, _TREE_CORE) and r.since(0, 5, 23):
        environ.put(r, _TREE_CORE, "python")
    core = environ.read(r, _TREE_CORE)
    if not args.disable_radix_cache and core != "python":
        raise _refuse(
            f"{_FLAG} requires the Python UnifiedTreeCore: {_TREE_CORE}={core!r} is not supported for sharded KV."
        )
    for name, message in _EXCLUDED:
        if getattr(args, name):
            raise _refuse(f"{_FLAG} {message}")
    if args.dcp_size > 1:
        raise _refuse(
            f"{_FLAG} and decode context parallelism (--dcp-size) are mutually exclusive users of the widened "
            "allocator index space."
        )
    _hierarchical_cache(r)
    for name, message in _EXCLUDED_LATER:
        if getattr(args, name):
            raise _refuse(f"{_FLAG} {message}")
    if args.enable_dynamic_chunking and args.pp_size > 1:
        raise _refuse(
            f"{_FLAG} does not support dynamic chunk sizing with pipeline parallelism: profiling and predicted chunks "
            "can exceed the fixed sharded scratch capacity. Disable --enable-dynamic-chunking."
        )
    if args.enable_two_batch_overlap:
        raise _refuse(
            f"{_FLAG} does not support --enable-two-batch-overlap: the sharded pool's per-batch gather plan is a "
            "process-wide singleton, but TBO rebuilds attention metadata multiple times per extend forward and "
            "clobbers the plan."
        )


_EXCLUDED = (
    (
        "enable_unified_cache_external_linker",
        "does not support --enable-unified-cache-external-linker: load-back allocates through the flat allocator API.",
    ),
    (
        "enable_streaming_session",
        "does not support streaming sessions: their virtual nodes do not carry KV-shard rotation metadata.",
    ),
    ("enable_session_radix_cache", "does not support session radix cache yet."),
    (
        "enable_flexkv",
        "does not support --enable-flexkv: FlexKV load-back allocates through the stock flat allocator API.",
    ),
    (
        "enable_unified_memory",
        "does not support --enable-unified-memory: the unified pool uses a different virtual-id allocator and layout.",
    ),
)
_EXCLUDED_LATER = (
    ("enable_lmcache", "does not support --enable-lmcache."),
    (
        "enable_hisparse",
        (
            "does not support --enable-hisparse: HiSparse selects a non-sharded allocator and assumes each rank owns "
            "complete KV pages."
        ),
    ),
)


def _hierarchical_cache(r: Resolution) -> None:
    args = r.args
    if not args.enable_hierarchical_cache:
        return
    if not r.since(0, 5, 23):
        raise _refuse(
            f"{_FLAG} does not support --enable-hierarchical-cache yet: HiCache backup/load assumes each rank holds "
            "full pages."
        )
    if args.hicache_storage_backend is not None:
        raise _refuse(
            f"{_FLAG} supports HiCache host offload but not --hicache-storage-backend yet: the storage path reads and "
            "writes whole pages per rank, not each rank's own stripe."
        )
    if not r.model.is_deepseek_dsa:
        return
    if args.hicache_host_memory_mode != "cache":
        raise _refuse("CP-sharded DSA HiCache requires host memory mode cache")
    if args.hicache_io_backend != "kernel" or args.hicache_mem_layout not in ("layer_first", "page_first"):
        raise _refuse("CP-sharded DSA HiCache requires kernel I/O with layer_first or page_first")


def _model(r: Resolution) -> None:
    if r.model.is_encoder_decoder:
        raise _refuse(
            f"{_FLAG} does not support encoder-decoder models: cross-attention uses a separate encoder page table that "
            "is not part of the sharded gather plan."
        )
    if r.model.attention_chunk_size is not None:
        raise _refuse(
            f"{_FLAG} does not support chunked/local-attention models yet: local-attention metadata is built from the "
            "page table before the scratch translation."
        )


def _attention_backend(r: Resolution) -> None:
    args = r.args
    prefill, _ = attention_backends(args)
    if prefill == "dsa" and r.since(0, 5, 23):
        _dsa(r)
        return
    if r.model.is_deepseek_dsa and r.since(0, 5, 23):
        raise _refuse("DSA KV sharding requires the dsa attention backend.")
    if prefill == "fa3":
        return
    if prefill != "trtllm_mla":
        raise _refuse(
            f"{_FLAG} currently requires the fa3 prefill attention backend, or trtllm_mla for plain-TP MLA; "
            f"got {prefill!r}."
        )
    if not uses_mla(r):
        raise _refuse("KV sharding with trtllm_mla requires an MLA model.")
    if args.attn_cp_size > 1:
        raise _refuse("KV sharding with trtllm_mla only supports plain-TP MLA (attn_cp_size must be 1).")
    if args.disable_chunked_prefix_cache:
        raise _refuse("KV sharding with trtllm_mla requires chunked prefix caching.")


def _dsa(r: Resolution) -> None:
    args, config = r.args, r.model.hf
    if (
        args.device != "cuda"
        or not args.enable_prefill_cp
        or args.attn_cp_size <= 1
        or args.cp_strategy != "interleave"
        or args.pp_size != 1
    ):
        raise _refuse("DSA KV sharding requires CUDA interleave prefill CP > 1 and PP1.")
    if (
        args.dsa_prefill_backend != "trtllm"
        or args.dsa_decode_backend != "trtllm"
        or args.kv_cache_dtype != "fp8_e4m3"
        or args.page_size != 64
    ):
        raise _refuse("DSA KV sharding requires TRTLLM prefill/decode with fp8_e4m3 KV and page size 64.")
    if (
        args.disaggregation_transfer_backend != "mooncake"
        or args.enable_dsa_cache_layer_split
        or config.get("index_kpool", 1) != 1
        or config.get("index_kpool_compress")
    ):
        raise _refuse("DSA KV sharding requires Mooncake, uncompressed index_kpool=1 and no DSA cache layer splitting.")


def _transfer(r: Resolution) -> None:
    backend = r.args.disaggregation_transfer_backend
    if backend not in ("mooncake", "nixl"):
        raise _refuse(
            f"{_FLAG} currently only supports the mooncake and nixl transfer backends: both route sends through "
            "CommonKVSender._prepare_send_indices and pair destinations by fancy index. Got "
            f"--disaggregation-transfer-backend {backend!r}."
        )
    if environ.read(r, "SGLANG_DISAGG_STAGING_BUFFER"):
        raise _refuse(
            f"{_FLAG} is incompatible with SGLANG_DISAGG_STAGING_BUFFER (the staging path assumes contiguous send "
            "slices)."
        )


def _topology(r: Resolution) -> None:
    args = r.args
    if not uses_mla(r):
        if not args.enable_prefill_cp or args.attn_cp_size <= 1:
            raise _refuse(
                f"{_FLAG} for GQA models shards across attention-CP ranks and requires --enable-prefill-cp with "
                "attn_cp_size > 1."
            )
        return
    if r.model.is_deepseek_dsa and not r.since(0, 5, 23):
        raise _refuse(f"{_FLAG} does not support DSA models yet (indexer buffers are not striped).")
    if args.attn_cp_size > 1:
        return
    if attn_dp_enabled(args):
        raise _refuse(
            f"{_FLAG} for MLA models without prefill CP shards across attention-TP and requires plain TP attention; "
            "set --attn-dp-size=1."
        )
    if args.tp_size <= 1:
        raise _refuse(
            f"{_FLAG} for MLA models without prefill CP shards across attention-TP ranks and needs tp_size > 1."
        )


def _chunk(r: Resolution) -> None:
    args = r.args
    page = args.page_size if args.page_size is not None else 1
    if page <= 1:
        raise _refuse(
            f"{_FLAG} requires a real page size (--page-size 64 recommended): the physical page is the P/D transfer "
            "descriptor and gather-copy unit; page_size=1 degenerates both into per-token operations."
        )
    chunk = args.chunked_prefill_size
    if chunk is None or chunk <= 0:
        raise _refuse(f"{_FLAG} requires chunked prefill (--chunked-prefill-size > 0).")
    if chunk % page == 0:
        return
    rounded = (chunk + page - 1) // page * page
    grown = 1.5 * (max(rounded, 2048) - max(chunk, 2048))
    if "mem_fraction_static" not in r.given and grown > 0:
        if args.mem_fraction_static is None:
            raise _refuse(
                "Cannot safely auto-round --chunked-prefill-size for KV sharding without a known device-memory "
                f"capacity; pass a multiple of page_size ({page})."
            )
        fraction = float(args.mem_fraction_static) - grown / gpu_memory_mib(r)
        if fraction <= 0:
            raise _refuse(
                "Auto-rounding --chunked-prefill-size for KV sharding would consume all automatically reserved GPU "
                f"memory; pass a smaller multiple of {page}."
            )
        r.set("mem_fraction_static", fraction, "the rounded chunk's activations need more room")
    r.warn(
        f"WARNING: Rounding --chunked-prefill-size up from {chunk} to {rounded} (a multiple of page_size = {page}) for "
        "KV sharding."
    )
    r.set("chunked_prefill_size", rounded, f"KV sharding needs whole pages of {page} tokens")


def _graphs(r: Resolution) -> None:
    backend = r.graph["prefill"].backend
    if backend != "disabled":
        r.warn(f"WARNING: Prefill CUDA graph ({backend}) is incompatible with {_FLAG}; disabling it.")
        r.set_graph("prefill", "backend", "disabled", f"{_FLAG} runs prefill eagerly, whatever was asked for")
    if r.args.speculative_algorithm is not None:
        r.set_graph("decode", "backend", "disabled", "speculative graphs do not carry the request's shard plan")
