"""The hierarchical cache: layouts, transfer, and what decode context parallelism excludes."""

from __future__ import annotations

from engine.sglang.derived import host_receive, uses_mla
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.cache import external_linker
from engine.sglang.steps.refusals import invalid, unguarded


def ratio(r: Resolution) -> None:
    """The host pool's default size, as a multiple of the device's."""
    args = r.args
    fraction = args.hicache_host_memory_fraction
    if fraction is not None and not 0 < fraction <= 1:
        raise invalid("--hicache-host-memory-fraction must be in (0, 1].")
    if args.hicache_ratio is not None or args.hicache_size > 0:
        r.fill("hicache_host_memory_fraction", None)
    if args.hicache_ratio is None and args.disaggregation_mode != "decode":
        r.fill("hicache_ratio", 1.2 if args.hicache_host_memory_mode == "buffer_only" else 2.0)


@unguarded
def run(r: Resolution) -> None:
    """Only where a host pool is in use."""
    args = r.args
    if external_linker.run(r):
        return
    decode_pool = (
        r.since(0, 5, 18)
        and args.disaggregation_mode == "decode"
        and args.disaggregation_decode_retraction_backup in (None, "host_pool")
    )
    if not (args.enable_hierarchical_cache or args.disaggregation_decode_enable_offload_kvcache or decode_pool):
        return
    _memory_mode(r)
    shared = host_receive(r)
    if shared:
        r.set("hicache_mem_layout", "layer_first", "the pool is shared with the transfer's buffers")
    _layout(r)
    if shared and args.hicache_mem_layout != "layer_first":
        raise invalid(
            f"The resolved HiCache storage layout {args.hicache_mem_layout!r} cannot share the layer_first decode host "
            "pool used by KV transfer"
        )
    if args.dcp_size > 1 and args.enable_hierarchical_cache and r.since(0, 5, 17):
        _decode_context(r)


def _memory_mode(r: Resolution) -> None:
    args = r.args
    mode = args.hicache_host_memory_mode
    if mode not in ("cache", "buffer_only"):
        raise invalid(f"hicache_host_memory_mode must be 'cache' or 'buffer_only', got {mode!r}")
    if args.hicache_size <= 0 and args.hicache_ratio is None and args.disaggregation_mode != "decode":
        raise invalid(
            f"--hicache-host-memory-mode {mode} requires a host pool size: pass --hicache-size or --hicache-ratio."
        )
    if mode == "cache":
        return
    if args.hicache_storage_backend is None:
        raise invalid(
            "--hicache-host-memory-mode buffer_only requires a storage backend (--hicache-storage-backend): host "
            "memory "
            "is only a staging buffer and all cached data lives in storage."
        )
    if args.hicache_write_policy == "write_back":
        if not r.since(0, 5, 22):
            raise invalid(
                "--hicache-host-memory-mode buffer_only does not support --hicache-write-policy write_back; use "
                "write_through or write_through_selective."
            )
        r.set("hicache_write_policy", "write_through", "a staging buffer has nothing to write back from")
    if args.disaggregation_mode == "decode":
        raise invalid(
            "--hicache-host-memory-mode buffer_only is not supported on decode instances: the decode-side prefetch and "
            "offload paths bypass the buffer-mode pipeline, fetching without its prefix context and never consuming "
            "its "
            "staged holds. Prefill instances share the standard scheduler path and are supported."
        )


def _layout(r: Resolution) -> None:
    args = r.args
    if args.hicache_mem_layout == "page_first_direct" and args.hicache_io_backend == "kernel":
        r.set("hicache_io_backend", "direct", "kernels do not copy the page_first_direct layout")
        r.warn("WARNING: Kernel io backend does not support page first direct layout, switching to direct io backend")
    if args.hicache_mem_layout == "page_first" and args.hicache_io_backend == "direct":
        r.set("hicache_mem_layout", "page_first_direct", "direct copies need it")
        r.warn(
            "WARNING: Page first layout is not supported with direct IO backend, switching to page first direct layout"
        )
    storage = args.hicache_storage_backend
    shared = r.since(0, 5, 23) and storage == "mooncake" and args.dcp_size > 1
    if storage in ("mooncake", "npu_memcache") and args.hicache_mem_layout == "layer_first" and not shared:
        layouts = {"direct": "page_first_direct", "kernel": "page_first"}
        layout = layouts.get(args.hicache_io_backend, args.hicache_mem_layout)
        r.set("hicache_mem_layout", layout, f"{storage} stores pages")
    if r.since(0, 5, 23) and args.enable_unified_memory and args.hicache_mem_layout == "page_first_direct":
        r.set("hicache_mem_layout", "page_first", "the unified pool's rows are strided")
        r.set("hicache_io_backend", "kernel", "the unified pool's rows are strided")


def _decode_context(r: Resolution) -> None:
    args = r.args
    if args.hicache_storage_backend is not None and not r.since(0, 5, 23):
        raise _not_yet(
            "--hicache-storage-backend (L3) with --dcp-size > 1 is not supported yet: under DCP each rank holds a "
            "distinct interleaved MLA KV shard, so the rank-0-only replicated-MLA backup and the storage keys must "
            "become dcp_rank-aware first. Run HiCache+DCP with L1/L2 only."
        )
    if args.hicache_storage_backend is not None and args.hicache_host_memory_mode == "buffer_only":
        raise _not_yet("HiCache L3 with DCP does not support buffer_only host memory.")
    if args.speculative_algorithm is not None and not r.since(0, 5, 18):
        raise _not_yet(
            "HiCache with --dcp-size > 1 does not support speculative decoding yet (the draft-model host pool has no "
            "DCP index translation)."
        )
    if args.speculative_algorithm not in (None, "DSPARK"):
        raise _not_yet(
            "HiCache with --dcp-size > 1 only supports DSPARK speculative decoding; other draft-model host pools "
            "have no "
            "DCP index translation."
        )
    if args.enable_lmcache:
        raise _not_yet(
            "--enable-lmcache with --dcp-size > 1 is not supported: LMCache has no DCP-aware index translation."
        )
    if args.enable_hisparse:
        raise _not_yet(
            "--enable-hisparse with --dcp-size > 1 is not supported: the HiSparse host pool is constructed without DCP "
            "translation."
        )
    if not uses_mla(r):
        raise _not_yet(
            "HiCache with --dcp-size > 1 is only supported for MLA models: the index translation lives in "
            "MLATokenToKVPoolHost, and the MHA host pool has none."
        )


def _not_yet(message: str) -> Refusal:
    return Refusal("NotImplementedError", message)
