"""The unified memory pool (``--enable-unified-memory``) and its page-major layout.

Source: SGLang 0.5.23, ``arg_groups/kv_cache_hook.py`` (``handle_page_major_kv_layout``,
``handle_unified_memory_pool``).
"""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attention_backends
from engine.sglang.resolution import Resolution
from engine.sglang.steps.kv import unified_bounds
from engine.sglang.steps.refusals import require
from engine.sglang.versioned import at

_FLAG = "--enable-unified-memory"
_VERIFY = frozenset({"triton", "trtllm_mla", "cutedsl_mla", "flashmla", "flashinfer", "fa3"})
_VERIFY_MHA = frozenset({"triton", "flashinfer", "fa3", "trtllm_mha"})
_EAGLE = ("EAGLE", "EAGLE3")
_TRANSFER = ("mooncake",)


def _backends(r: Resolution) -> set[str]:
    return {backend for backend in attention_backends(r.args) if backend is not None}


def page_major(r: Resolution) -> None:
    """The layout that the pool implies, and the kernels that can read it."""
    args, layout = r.args, "--enable-page-major-kv-layout"
    if args.enable_unified_memory:
        r.set("enable_page_major_kv_layout", True, "the unified pool is laid out page by page")
    if not args.enable_page_major_kv_layout:
        return
    require(
        args.enable_unified_memory,
        f"{layout} without {_FLAG} is temporarily unsupported: the strided MHA K/V views were removed and the "
        "static-pool page-major layout awaits its per-layer-view reimplementation. Run with "
        f"{_FLAG}, or drop {layout}.",
    )
    mla = r.model.use_mla
    if not r.since(0, 5, 23):
        unified_bounds.rows(r)
    if mla:
        allowed = {"triton", "fa3", "trtllm_mla", "flashinfer", "cutedsl_mla", "flashmla"}
        allowed |= unified_bounds.retired_mla(r)
    elif r.model.has_asymmetric_kv and r.since(0, 5, 23):
        allowed = {"triton", "fa3", "fa4"}
    else:
        allowed = {"triton", "fa3", "fa4", "flashinfer", "trtllm_mha"}
    found = _backends(r)
    require(
        found <= allowed,
        f"{layout}: the resolved attention backends {sorted(found)} are not in the allowed set {sorted(allowed)} for "
        f"this configuration{at(unified_bounds.LAYOUT_NOTE, r.release.version)}. Pass a compatible "
        "--attention-backend.",
    )
    extra = {"cutedsl", "helion"} if mla else set()
    for side, kernels in (
        ("decode", {"triton", "flashinfer"} | extra),
        ("prefill", {"triton", "flashkda"} | ({"flashinfer"} if r.since(0, 5, 23) else set()) | extra),
    ):
        backend = getattr(args, f"linear_attn_{side}_backend") or args.linear_attn_backend
        require(
            backend is None or backend in kernels,
            f"{layout}: linear-attention {side.upper()} backend must be one of {sorted(kernels)} for the strided "
            f"conv/SSM state; got {backend!r}.",
        )
    require(
        args.mamba_backend in (None, "triton"),
        f"{layout} requires the Triton Mamba kernels for the strided conv/SSM state; got {args.mamba_backend!r}. Pass "
        "--mamba-backend triton.",
    )


def run(r: Resolution) -> None:
    """Refuse what the pool's virtual pages do not reach; drop a full prefill graph that it cannot fill."""
    args = r.args
    if not args.enable_unified_memory:
        return
    if args.disaggregation_mode != "null":
        _disaggregated(r)
    if not r.since(0, 5, 22):
        unified_bounds.features(r)
        if not r.since(0, 5, 20):
            unified_bounds.decode_only(r)
            return
        if args.dcp_size > 1:
            _context_parallel(r)
        _full_prefill(r)
        return
    algorithm = args.speculative_algorithm
    require(
        algorithm in (None, "DSPARK", *_EAGLE, "DFLASH"),
        f"{_FLAG} only supports --speculative-algorithm DSPARK, DFLASH, EAGLE and EAGLE3; other speculative algorithms "
        "are not yet audited for the unified pool's virtual-to-physical loc translation. Got "
        f"--speculative-algorithm={algorithm!r}.",
    )
    require(
        args.speculative_eagle_topk in (None, 1),
        f"{_FLAG} supports a linear draft chain only (--speculative-eagle-topk in {{None, 1}}); tree verify relocates "
        "accepted tokens one at a time inside the target pool, which the unified pool's page-granular move_kv_cache "
        f"cannot express. Got --speculative-eagle-topk={args.speculative_eagle_topk!r}.",
    )
    if algorithm in _EAGLE:
        _eagle(r)
    if algorithm == "DSPARK":
        fa4 = {"fa4"} if r.since(0, 5, 23) else unified_bounds.retired_mla(r)
        _verifying(r, algorithm, _VERIFY | fa4)
    if algorithm == "DFLASH":
        _verifying(r, algorithm, _verify_mha(r))
    _features(r)
    if args.dcp_size > 1:
        _context_parallel(r)
    _full_prefill(r)
    if not r.since(0, 5, 23):
        unified_bounds.decode_graph(r)


def _verify_mha(r: Resolution) -> frozenset[str]:
    return _VERIFY_MHA if r.since(0, 5, 23) else _VERIFY_MHA - {"trtllm_mha"}


def _full_prefill(r: Resolution) -> None:
    found = _backends(r)
    if r.graph["prefill"].backend == "full" and not found <= {"fa3", "fa4"}:
        r.set_graph("prefill", "backend", "disabled", "only FlashAttention fills a full prefill graph from this pool")
        r.warn(
            f"WARNING: {_FLAG}: disabling the FULL prefill cuda-graph backend. It builds its block table in "
            "_init_full_cg_prefill_metadata, which only ['fa3', 'fa4'] implement; the resolved attention backends are "
            f"{sorted(found)}. Decode capture and the other prefill backends are unaffected."
        )


def _features(r: Resolution) -> None:
    args = r.args
    eagle = args.speculative_algorithm in _EAGLE
    require(
        not args.enable_two_batch_overlap,
        f"{_FLAG} does not support --enable-two-batch-overlap: the iteration's read tables are indexed by the whole "
        "batch's rows, and a TBO child's readers do not offset into them.",
    )
    require(
        not args.enable_lmcache,
        f"{_FLAG} is not yet compatible with --enable-lmcache: the LMCache offload path indexes the device buffers "
        "with the ids it is handed, and under the unified pool those are VIRTUAL.",
    )
    require(
        not args.enable_unified_cache_external_linker,
        f"{_FLAG} does not support --enable-unified-cache-external-linker: direct L3 transfers do not preserve unified "
        "page-envelope indices and compaction lifetimes. Use --enable-hierarchical-cache for supported L2/L3 "
        "transfers.",
    )
    require(
        not (eagle and args.disaggregation_decode_retraction_backup == "host_pool"),
        f"{_FLAG} + EAGLE/EAGLE3 does not support --disaggregation-decode-retraction-backup=host_pool: the backup "
        "builds the draft's host pool off the draft's own device pool, which a fused EAGLE draft does not have.",
    )
    require(
        not (eagle and args.enable_hierarchical_cache),
        f"{_FLAG} + EAGLE/EAGLE3 does not support --enable-hierarchical-cache: HiCache keeps the draft on a private "
        "pool, and would pack an MTP head's KV into the target's page-envelope host pool, which refuses per-layer "
        "draft loads.",
    )


def _disaggregated(r: Resolution) -> None:
    args, pd = r.args, f"{_FLAG} with PD disaggregation"
    backend = args.disaggregation_transfer_backend
    transfers = (
        f"these transfer backends: {', '.join(_TRANSFER)}" if r.since(0, 5, 21) else "the mooncake transfer backend"
    )
    require(backend in _TRANSFER, f"{pd} supports only {transfers}; got {backend!r}.")
    require(
        args.pp_size == 1,
        f"{pd} does not support pipeline parallelism (whole-envelope transfer has no per-layer entries to subset).",
    )
    require(
        not (backend == "mooncake" and args.speculative_algorithm is not None and r.since(0, 5, 21)),
        f"{pd} does not support speculative decoding with the Mooncake transfer backend.",
    )
    require(
        not environ.read(r, "SGLANG_DISABLE_LAZY_COMPACTION"),
        f"{pd} requires lazy compaction; unset SGLANG_DISABLE_LAZY_COMPACTION.",
    )
    require(
        not args.enable_hisparse,
        f"{pd} is not compatible with --enable-hisparse: the decode-side HiSparse prealloc path ships host/C4 rows "
        "straight from the allocator, bypassing the virtual->physical translation the unified pool needs.",
    )
    if r.since(0, 5, 21):
        _decode_pools(r)


def _decode_pools(r: Resolution) -> None:
    args, model = r.args, r.model
    if args.disaggregation_decode_enable_offload_kvcache:
        offload = f"{_FLAG} decode KV offload does not support"
        require(
            args.hicache_storage_backend == "file",
            f"{_FLAG} with decode KV offload currently supports --hicache-storage-backend=file only.",
        )
        require(not model.use_mla, f"{offload} MLA models yet.")
        require(model.state_carrying is None, f"{offload} hybrid-Mamba models.")
        require(not model.is_hybrid_swa, f"{offload} hybrid-SWA H2D/D2H transfers yet.")
    if args.disaggregation_decode_retraction_backup == "host_pool":
        if not r.since(0, 5, 22):
            unified_bounds.host_pool(r)
        require(
            model.state_carrying is None,
            f"{_FLAG} host-pool decode retraction does not support hybrid-Mamba models.",
        )


def _eagle(r: Resolution) -> None:
    model, title = r.model, f"{_FLAG} + EAGLE/EAGLE3"
    require(
        model.is_hybrid_swa or model.state_carrying is not None,
        f"{title} requires a unified target (hybrid-SWA or a mamba hybrid): the draft's KV lives fused inside the "
        f"{at(unified_bounds.FUSED_WHERE, r.release.version)}.",
    )
    allowed = _VERIFY | unified_bounds.retired_mla(r) if model.use_mla else _verify_mha(r)
    found = set(attention_backends(r.args))
    require(
        None not in found and found <= allowed,
        f"{title} requires the target on the spec-verify-audited attention backends {sorted(allowed)} "
        f"(got {sorted(found, key=str)}).",
    )
    draft = r.args.speculative_draft_attention_backend
    drafts = {draft} if draft else found
    rails = _verify_mha(r)
    require(
        drafts <= rails,
        f"{title} runs the draft on {sorted(drafts, key=str)}, but a fused draft is MHA-shaped and reads its KV "
        f"through the translated MHA rails {sorted(rails)}. Set --speculative-draft-attention-backend to one of them.",
    )


def _verifying(r: Resolution, algorithm: str, allowed: frozenset[str]) -> None:
    note = ""
    if r.args.dcp_size > 1:
        allowed = allowed - {"flashinfer"}
        note = " (flashinfer is excluded under --dcp-size > 1)"
    found = _backends(r)
    require(
        found <= allowed,
        f"{_FLAG} + {algorithm} requires spec-verify-audited attention backends {sorted(allowed)}{note} for both "
        f"prefill and decode; got {sorted(found)}. Other backends do not translate speculative verify indices to the "
        "unified pool's physical ids yet.",
    )


def _context_parallel(r: Resolution) -> None:
    title = f"{_FLAG} with decode context parallelism (--dcp-size > 1)"
    require(
        r.model.use_mla,
        f"{title} supports MLA models only (e.g. kimi-linear): the MHA unified pool has no DCP-aware masked write path "
        "(UnifiedMHATokenToKVPool.set_kv_buffer asserts dcp_kv_mask is None).",
    )
    require(
        not r.model.is_hybrid_swa,
        f"{title} does not support hybrid sliding-window models: UnifiedSWATokenToKVPoolAllocator does not widen its "
        "virtual id space, and the full->swa mapping is not DCP-sharded.",
    )
    require(
        r.args.disaggregation_mode == "null",
        f"{title} does not support PD disaggregation: the transfer ships whole page envelopes, which under DCP hold "
        "only this rank's shard of each widened page. Rejected here rather than at the first KV transfer, where "
        "translate_kv_indices_for_transfer would abort a server that had already booted.",
    )
    allowed = {"flashinfer", "trtllm_mla", "cutedsl_mla"} | unified_bounds.retired_mla(r)
    found = _backends(r)
    require(
        found <= allowed,
        f"{title} requires {sorted(allowed)} for the full-attention layers; got {sorted(found)}. The other paged MLA "
        "backends build their block table from raw (widened) req_to_token page ids and do not translate them through "
        "the unified pool's virtual->physical page table.",
    )
