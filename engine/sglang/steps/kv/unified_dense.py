"""The unified memory pool until 0.5.18: Triton's kernels, or MLA's over dense views; little else beside it.

Source: SGLang 0.5.18 and 0.5.17, ``server_args.py`` (``_handle_page_major_kv_layout``,
``_handle_unified_memory_pool``).
"""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attention_backends
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, require

_FLAG = "--enable-unified-memory"
_LAYOUT = "--enable-page-major-kv-layout"
_MLA = frozenset({"triton", "fa3", "trtllm_mla", "flashinfer", "cutedsl_mla", "tokenspeed_mla"})
_VERIFY = frozenset({"triton", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla"})


def _backends(r: Resolution) -> set[str]:
    return {backend for backend in attention_backends(r.args) if backend is not None}


def page_major(r: Resolution) -> None:
    """The layout that the pool implies, and the kernels that can read it."""
    args = r.args
    if args.enable_unified_memory:
        r.set("enable_page_major_kv_layout", True, "the unified pool is laid out page by page")
    if not args.enable_page_major_kv_layout:
        return
    if not r.since(0, 5, 17):
        _triton_only(r)
        return
    mla = r.model.use_mla
    allowed = _MLA if args.enable_unified_memory and mla else frozenset({"triton"})
    found = _backends(r)
    require(
        found <= allowed,
        f"{_LAYOUT} requires the Triton attention backend for the full-attention layers (unified-memory MLA also "
        f"allows the paged MLA backends); got {sorted(found)}, allowed {sorted(allowed)}. Pass a compatible "
        "--attention-backend.",
    )
    extra = ({"cutedsl", "helion"} if r.since(0, 5, 18) else {"cutedsl"}) if mla else set()
    for side, kernels in (("decode", {"triton", "flashinfer"} | extra), ("prefill", {"triton", "flashkda"} | extra)):
        backend = getattr(args, f"linear_attn_{side}_backend") or args.linear_attn_backend
        require(
            backend is None or backend in kernels,
            f"{_LAYOUT}: linear-attention {side.upper()} backend must be one of {sorted(kernels)} for the strided "
            f"conv/SSM state; got {backend!r}.",
        )
    require(
        args.mamba_backend in (None, "triton"),
        f"{_LAYOUT} requires the Triton Mamba kernels for the strided conv/SSM state; got {args.mamba_backend!r}. Pass "
        "--mamba-backend triton.",
    )


def _triton_only(r: Resolution) -> None:
    """Before 0.5.17 no kernel but Triton's reads the layout."""
    args, found = r.args, _backends(r)
    require(
        found <= {"triton"},
        f"{_LAYOUT} requires the Triton attention backend for the full-attention layers; got {sorted(found)}. Pass "
        "--attention-backend triton.",
    )
    kernels = {
        args.linear_attn_backend,
        args.linear_attn_decode_backend,
        args.linear_attn_prefill_backend,
        args.mamba_backend,
    } - {None}
    require(
        kernels <= {"triton"},
        f"{_LAYOUT} requires the Triton linear-attention / Mamba kernels for the strided conv/SSM state; got "
        f"{sorted(kernels)}. Pass --linear-attn-backend triton and --mamba-backend triton.",
    )


def run(r: Resolution) -> None:
    """Refuse what the pool's virtual slots do not reach."""
    args = r.args
    if not args.enable_unified_memory:
        return
    if r.since(0, 5, 18):
        _disaggregated(r)
        _drafting(r)
    else:
        not_with = f"{_FLAG} is not yet compatible with"
        require(args.disaggregation_mode == "null", f"{not_with} PD disaggregation.")
        require(args.speculative_algorithm is None, f"{not_with} speculative decoding.")
    require(
        not (args.enable_hierarchical_cache or args.enable_lmcache),
        f"{_FLAG} is not yet compatible with hierarchical / host-tiered KV cache (--enable-hierarchical-cache / "
        "--enable-lmcache): the unified-memory-pool init wires up no host pools, and its device mamba / full-attention "
        "slots are VIRTUAL \u2014 the host-offload path does not translate them to physical.",
    )
    require(
        args.dcp_size == 1,
        f"{_FLAG} is not yet compatible with decode context parallelism (--dcp-size > 1): the pool has no DCP-aware "
        "masked write path (UnifiedMHATokenToKVPool.set_kv_buffer asserts dcp_kv_mask is None), so a DCP run would "
        "boot and then fail on the first KV write.",
    )
    if r.graph["prefill"].backend == "tc_piecewise":
        raise invalid(
            f"{_FLAG} supports monolithic (decode) cuda-graph capture only; disable piecewise prefill capture (e.g. "
            "--cuda-graph-backend-prefill=disabled)."
        )


def _disaggregated(r: Resolution) -> None:
    args, pd = r.args, f"{_FLAG} with PD disaggregation"
    if args.disaggregation_mode == "null":
        return
    backend = args.disaggregation_transfer_backend
    require(backend == "mooncake", f"{pd} supports only the mooncake transfer backend; got {backend!r}.")
    require(
        args.pp_size == 1,
        f"{pd} does not support pipeline parallelism (whole-envelope transfer has no per-layer entries to subset).",
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


def _drafting(r: Resolution) -> None:
    args = r.args
    algorithm, branches = args.speculative_algorithm, args.speculative_eagle_topk
    require(
        algorithm in (None, "DSPARK"),
        f"{_FLAG} only supports --speculative-algorithm DSPARK (chain draft); other speculative algorithms are not yet "
        f"audited for the unified pool's virtual/dense loc translation. Got --speculative-algorithm={algorithm!r}.",
    )
    if algorithm is None:
        return
    require(
        branches in (None, 1),
        f"{_FLAG} + DSPARK supports a linear draft chain only (--speculative-eagle-topk in {{None, 1}}); tree verify "
        f"is not audited for the unified pool. Got --speculative-eagle-topk={branches!r}.",
    )
    found = _backends(r)
    require(
        found <= _VERIFY,
        f"{_FLAG} + DSPARK requires spec-verify-audited attention backends {sorted(_VERIFY)} for both prefill and "
        f"decode; got {sorted(found)}. flashinfer / fa3 do not translate speculative verify indices to the unified "
        "pool's dense space yet.",
    )
