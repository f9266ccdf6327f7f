"""Elastic expert parallelism: ranks that leave and join, and what a deployment that may grow has to fix."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.parallel import elastic_scale
from engine.sglang.steps.refusals import require, unguarded
from engine.sglang.steps.serving.ib_devices import check as check_ib_devices

_ALGORITHMS = ("elasticity_aware", "elasticity_aware_hierarchical")


@unguarded
def run(r: Resolution) -> None:
    """Checks of every elastic deployment; then those of one that may grow."""
    args = r.args
    _rejoin(r)
    backend = args.elastic_ep_backend
    if backend is not None:
        if args.enable_eplb:
            if args.eplb_algorithm == "auto":
                r.set("eplb_algorithm", "elasticity_aware", "elastic expert parallelism")
            require(
                args.eplb_algorithm in _ALGORITHMS,
                "Elastic EP requires eplb_algorithm to be set to 'auto' or 'elasticity_aware(_hierarchical)'.",
            )
        require(args.pp_size == 1, "PP size should be set to 1 under elastic EP")
        if backend == "mooncake":
            check_ib_devices(r, args.mooncake_ib_device)
    if not r.since(0, 5, 16):
        if getattr(args, "elastic_ep_rejoin", False):
            require(backend is not None, "Elastic EP rejoin requires elastic_ep_backend to be set.")
        return
    if args.ep_join_mode is not None:
        require(backend is not None, "--elastic-ep-join-mode requires --elastic-ep-backend to be set.")
        if args.ep_join_mode == "scale":
            require(
                args.node_rank == 1,
                f"Elastic EP scale-up requires one joining TP group at --node-rank 1 (got {args.node_rank}).",
            )
            require(
                args.ep_join_rank_offset > 0,
                "Elastic EP scale joiners require --elastic-ep-join-rank-offset set to the current effective EP size.",
            )
    if args.ep_join_rank_offset != 0:
        require(
            args.ep_join_mode == "scale",
            "--elastic-ep-join-rank-offset is only valid with --elastic-ep-join-mode scale.",
        )
        require(args.ep_join_rank_offset >= 0, "elastic EP join rank offset must be >= 0.")
    if args.max_ep_size is not None:
        require(backend is not None, "--max-ep-size requires --elastic-ep-backend to be set.")
        require(args.max_ep_size > 0, "--max-ep-size must be a positive integer.")
    may_grow = backend is not None and args.max_ep_size is not None and args.max_ep_size > args.tp_size
    if args.elastic_ep_initial_size is not None:
        require(
            may_grow,
            "--elastic-ep-initial-size is only valid for an Elastic EP deployment with --max-ep-size larger than its "
            "local TP size.",
        )
    if may_grow:
        elastic_scale.run(r)


def _rejoin(r: Resolution) -> None:
    """``--elastic-ep-rejoin``, which 0.5.21 removed."""
    args = r.args
    if not getattr(args, "elastic_ep_rejoin", False):
        return
    if not r.since(0, 5, 16):
        return
    if args.ep_join_mode is None:
        r.warn("WARNING: --elastic-ep-rejoin is deprecated, use --elastic-ep-join-mode recover instead.")
        r.set("ep_join_mode", "recover", "--elastic-ep-rejoin is its old spelling")
        return
    require(
        args.ep_join_mode == "recover",
        f"--elastic-ep-rejoin (deprecated) conflicts with --elastic-ep-join-mode {args.ep_join_mode}.",
    )
