"""Decode context parallelism: its communication backend, and what it excludes."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def run(r: Resolution) -> None:
    """Choose the backend where none is given, then check the combination."""
    args = r.args
    if args.dcp_comm_backend is None:
        r.fill("dcp_comm_backend", _default(r))
    size, backend = args.dcp_size, args.dcp_comm_backend
    if size < 1:
        raise invalid(
            "Decode context parallel size (--dcp-size / --decode-context-parallel-size) must be >= 1, but got "
            f"dcp_size={size}."
        )
    if size > 1 and args.speculative_algorithm is not None and not r.since(0, 5, 17):
        raise invalid(
            "Decode context parallel (--dcp-size / --decode-context-parallel-size > 1) on CUDA platform does not "
            f"support any speculative algorithm, but got dcp_size={size} on a CUDA platform with speculative decoding "
            "enabled."
        )
    if size > 1 and args.enable_prefill_cp and r.since(0, 5, 22):
        raise invalid("--dcp-size > 1 does not support --enable-prefill-cp.")
    all_to_all = backend in ("a2a", "fi_a2a")
    if all_to_all and size <= 1:
        raise invalid(
            f"--dcp-comm-backend {backend} only affects the decode context-parallel attention reduction and therefore "
            f"requires --dcp-size / --decode-context-parallel-size > 1, but got dcp_size={size}."
        )
    if args.dcp_replicate_q_proj:
        if size <= 1:
            raise invalid("--dcp-replicate-q-proj requires --dcp-size > 1.")
        if not all_to_all:
            raise invalid(
                "--dcp-replicate-q-proj only applies to the a2a/fi_a2a DCP communication backend (it removes the "
                f"head-dim Q all-gather); got --dcp-comm-backend={backend}."
            )


def _default(r: Resolution) -> str:
    args = r.args
    if args.dcp_size <= 1:
        return "ag_rs"
    if not platform_of(r.hardware).is_sm100:
        return "a2a"
    a_node = args.tp_size // max(args.nnodes // args.pp_size, 1)
    return "fi_a2a" if a_node % args.dcp_size == 0 else "a2a"
