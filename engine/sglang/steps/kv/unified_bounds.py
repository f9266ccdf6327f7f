"""What older releases refused of the unified memory pool, and in which words.

Source: SGLang 0.5.21 and 0.5.22, ``arg_groups/kv_cache_hook.py`` (``handle_page_major_kv_layout``,
``handle_unified_memory_pool``).
"""

from __future__ import annotations

from engine.sglang.derived import attention_backends
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid, require
from engine.sglang.versioned import FIRST, at

_FLAG = "--enable-unified-memory"
_DSPARK_BACKENDS = frozenset({"triton", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla"})
LAYOUT_NOTE: tuple[tuple[Version, str], ...] = (
    ((0, 5, 23), ""),
    ((0, 5, 22), " (unified memory allows the stride-aware per-layer-view families)"),
    (
        FIRST,
        (
            " (unified memory allows the per-layer-view families; plain page-major keeps the envelope-strided views "
            "only Triton reads)"
        ),
    ),
)
FUSED_WHERE: tuple[tuple[Version, str], ...] = (
    ((0, 5, 23), "target's sub-pool entries"),
    (FIRST, "full-attention page envelope"),
)
_ROWS: tuple[tuple[Version, tuple[str, str]], ...] = (
    (
        (0, 5, 22),
        (
            "does not yet admit asymmetric K/V rows (head_dim != v_head_dim)",
            (
                "The token-major views can hold them, but the backends' write and read paths are not audited for it; "
                "run this model without --enable-unified-memory."
            ),
        ),
    ),
    (
        FIRST,
        (
            "requires uniform K/V rows (head_dim == v_head_dim)",
            (
                "The unified pool's per-layer views require a uniform row width; run this model without "
                "--enable-unified-memory."
            ),
        ),
    ),
)


def retired_mla(r: Resolution) -> frozenset[str]:
    """tokenspeed_mla, which 0.5.23 turned into an alias."""
    return frozenset() if r.since(0, 5, 23) else frozenset({"tokenspeed_mla"})


def rows(r: Resolution) -> None:
    """Before 0.5.23: K and V rows of one width, but for MLA."""
    model = r.model
    refuses, remedy = at(_ROWS, r.release.version)
    require(
        model.use_mla or not model.has_asymmetric_kv,
        f"{_FLAG} {refuses}; this model has head_dim={model.head_dim}, v_head_dim={model.v_head_dim}, "
        f"swa_head_dim={model.swa_head_dim}, swa_v_head_dim={model.swa_v_head_dim}. {remedy}",
    )


def host_pool(r: Resolution) -> None:
    """Before 0.5.22: what a decode server cannot take back from its host pool."""
    title = f"{_FLAG} host-pool decode retraction does not support"
    require(not r.args.disaggregation_decode_enable_radix_cache, f"{title} decode radix-cache H2D/D2H transfers yet.")
    require(r.model.state_carrying is None, f"{title} hybrid-Mamba models.")
    require(not r.model.is_hybrid_swa, f"{title} hybrid-SWA H2D/D2H transfers yet.")


def features(r: Resolution) -> None:
    """Before 0.5.22: DSpark chains only, and the features that cannot follow virtual pages."""
    args = r.args
    algorithm = args.speculative_algorithm
    require(
        algorithm in (None, "DSPARK"),
        f"{_FLAG} only supports --speculative-algorithm DSPARK (chain draft); other speculative algorithms are not yet "
        f"audited for the unified pool's virtual/kernel-facing loc translation. Got --speculative-algorithm="
        f"{algorithm!r}.",
    )
    if algorithm == "DSPARK":
        require(
            args.speculative_eagle_topk in (None, 1),
            f"{_FLAG} + DSPARK supports a linear draft chain only (--speculative-eagle-topk in {{None, 1}}); tree "
            "verify is not audited for the unified pool. Got --speculative-eagle-topk="
            f"{args.speculative_eagle_topk!r}.",
        )
        found = {backend for backend in attention_backends(args) if backend is not None}
        require(
            found <= _DSPARK_BACKENDS,
            f"{_FLAG} + DSPARK requires spec-verify-audited attention backends {sorted(_DSPARK_BACKENDS)} for both "
            f"prefill and decode; got {sorted(found)}. flashinfer / fa3 do not translate speculative verify indices to "
            "the unified pool's kernel-facing space yet.",
        )
    require(
        not args.enable_two_batch_overlap or not r.since(0, 5, 20),
        f"{_FLAG} does not support --enable-two-batch-overlap: TBO's replay split hands each child a view without the "
        "pre-translate write loc, so a captured decode replay raises. "
        "TODO(ch-wan): carry out_cache_loc_virtual into the child view.",  # leftover-ok: the engine's own words
    )
    if not r.since(0, 5, 21):
        require(
            not (args.enable_hierarchical_cache or args.enable_lmcache),
            f"{_FLAG} is not yet compatible with hierarchical / host-tiered KV cache (--enable-hierarchical-cache / "
            "--enable-lmcache): the unified-memory-pool init wires up no host pools, and its device mamba / "
            "full-attention slots are VIRTUAL \u2014 the host-offload path does not translate them to physical.",
        )
    require(
        not args.enable_lmcache,
        f"{_FLAG} is not yet compatible with --enable-lmcache: the LMCache offload path indexes the device buffers "
        "with the ids it is handed, and under the unified pool those are VIRTUAL.",
    )


def decode_only(r: Resolution) -> None:
    """Before 0.5.20: no decode context parallelism, and no prefill graph.

    Source: SGLang 0.5.19, ``arg_groups/kv_cache_hook.py``.
    """
    args = r.args
    require(
        args.dcp_size == 1,
        f"{_FLAG} is not yet compatible with decode context parallelism (--dcp-size > 1): the pool has no DCP-aware "
        "masked write path (UnifiedMHATokenToKVPool.set_kv_buffer asserts dcp_kv_mask is None), so a DCP run would "
        "boot and then fail on the first KV write.",
    )
    if r.graph["prefill"].backend == "disabled":
        return
    asked = args.cuda_graph_backend_prefill
    if asked is not None:
        raise invalid(
            f"{_FLAG} supports decode cuda-graph capture only; prefill capture is not wired (the prefill graph runner "
            f"bypasses the unified virtual->physical loc rebind). Got --cuda-graph-backend-prefill={asked!r}; pass "
            "--cuda-graph-backend-prefill=disabled."
        )
    r.set_graph("prefill", "backend", "disabled", "the unified pool is captured for decode only")
    r.warn(
        f"WARNING: {_FLAG}: disabling prefill cuda-graph capture (not wired for the unified pool's loc rebind); "
        "decode capture is unaffected."
    )


def decode_graph(r: Resolution) -> None:
    """In 0.5.22: no decode graph with trtllm_mha."""
    _, decode = attention_backends(r.args)
    require(
        decode != "trtllm_mha" or r.graph["decode"].backend == "disabled",
        f"{_FLAG} does not yet support decode cuda graphs with the trtllm_mha attention backend: its replay refills "
        "the page table from the previous replay's sequence lengths. Pass --disable-cuda-graph, or pick another decode "
        "attention backend (fa3 / fa4 / flashinfer / triton).",
    )
