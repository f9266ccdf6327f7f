"""Prefill and decode servers: what their roles exclude."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled, host_receive, num_dp_ranks
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.disaggregation import prefill_complete
from engine.sglang.steps.refusals import invalid, require, unguarded
from engine.sglang.versioned import FIRST, at

_RELAYOUT: tuple[tuple[Version, tuple[str, ...]], ...] = (
    ((0, 5, 22), ("mooncake", "nixl", "mori", "ascend", "fake")),
    ((0, 5, 19), ("mooncake", "nixl", "fake")),
    (FIRST, ("mooncake", "nixl")),
)
_BOOTSTRAP_PORT_OF_ITS_OWN = ("fake",)
"""The transfer backends that keep a bootstrap server of their own beside the Rust server (from 0.5.23 on)."""


@unguarded
def run(r: Resolution) -> None:
    """Transfer backend, allocation policy, host buffering; then the role's own rules."""
    args = r.args
    if args.disaggregation_transfer_backend == "mooncake_tcp":
        r.set("disaggregation_transfer_backend", "mooncake", "mooncake over TCP")
        r.set("disaggregation_ib_device", None, "mooncake over TCP")
    mode = args.disaggregation_mode
    if args.disaggregation_decode_allocation_policy == "prefill_complete":
        prefill_complete.check(r)
        if mode == "prefill" and args.optimistic_prefill_attempts == 0:
            r.set("optimistic_prefill_attempts", 1, "prefill_complete needs an optimistic prefill")
    if mode == "prefill" and args.dcp_size > 1 and r.since(0, 5, 17):
        r.warn(
            "WARNING: DCP on a PD prefill server is supported when prefill and decode use the same DCP layout, but it "
            "usually adds communication overhead without improving prefill performance."
        )
    _host_receive(r)
    relayout = at(_RELAYOUT, r.release.version)
    widened = args.dcp_size > 1 and r.since(0, 5, 17)
    if mode == "decode" and widened and args.disaggregation_transfer_backend not in relayout:
        named = (
            f"{', '.join(relayout[:-1])}, or fake for synthetic benchmarking"
            if "fake" in relayout
            else "mooncake or nixl"
        )
        raise invalid(
            f"PD decode DCP requires --disaggregation-transfer-backend {named}, got "
            f"{args.disaggregation_transfer_backend!r}."
        )
    if mode == "decode" and widened and not r.since(0, 5, 21):
        chunk_cache = "PD decode DCP currently requires chunk cache;"
        if args.disaggregation_decode_enable_radix_cache:
            raise invalid(f"{chunk_cache} --disaggregation-decode-enable-radix-cache is not supported.")
        if args.enable_hierarchical_cache:
            raise invalid(f"{chunk_cache} --enable-hierarchical-cache is not supported.")
    if mode == "decode":
        _decode(r)
    elif mode == "prefill":
        require(
            args.disaggregation_transfer_backend != "fake",
            "Prefill server does not support 'fake' as the transfer backend",
        )
        if environ.read(r, "SGLANG_RUST_SERVER"):
            _bootstrap_port(r)
        if not r.since(0, 5, 16):
            r.set("disable_cuda_graph", True, "a prefill server captures no graph by itself")
    if mode in ("prefill", "decode"):
        _both(r)


def _host_receive(r: Resolution) -> None:
    args = r.args
    threshold = args.disaggregation_decode_host_receive_threshold
    if not 0 <= threshold <= 1:
        raise invalid("--disaggregation-decode-host-receive-threshold must be between 0 and 1")
    if not host_receive(r):
        return
    if args.enable_hisparse or args.enable_pd_role_switch:
        raise invalid("Decode host receive does not yet support HiSparse or role switching")
    if args.disaggregation_decode_retraction_backup == "cpu_tensor":
        raise invalid("Decode host KV buffering requires host_pool retraction")
    r.set("disaggregation_decode_retraction_backup", "host_pool", "host buffering needs it")


def _decode(r: Resolution) -> None:
    args = r.args
    if args.disaggregation_decode_enable_radix_cache:
        option = "--disaggregation-decode-enable-radix-cache is incompatible with"
        if args.enable_hisparse:
            raise invalid(f"{option} --enable-hisparse")
        if args.disaggregation_transfer_backend == "fake":
            raise invalid(f"{option} --disaggregation-transfer-backend fake")
        beside = ("DSPARK",) if r.since(0, 5, 21) else ()
        if not r.since(0, 5, 23) and args.speculative_algorithm not in (None, *beside):
            raise invalid(f"{option} speculative decoding (--speculative-algorithm {args.speculative_algorithm})")
        if attn_dp_enabled(args):
            r.warn(
                "WARNING: EXPERIMENTAL: Decode radix cache with DP attention. Requires prefix-aware DP rank routing "
                "for "
                "optimal cache hits."
            )
        r.set("disable_radix_cache", False, "--disaggregation-decode-enable-radix-cache")
        r.warn("WARNING: EXPERIMENTAL: Radix cache is enabled for decode server")
    else:
        r.set("disable_radix_cache", True, "a decode server reuses no prefix")
        r.warn(
            "WARNING: Radix cache is disabled for decode server"
            if r.since(0, 5, 22)
            else "WARNING: KV cache is forced as chunk cache for decode server"
        )
    if args.disaggregation_decode_extra_slots is None:
        slots = 0
        if args.max_running_requests is not None:
            worker = args.max_running_requests // max(1, num_dp_ranks(args))
            worker = max(1, worker) if r.since(0, 5, 23) else worker
            slots = worker * 2 if worker <= 32 else 0
        r.fill("disaggregation_decode_extra_slots", slots)


def _bootstrap_port(r: Resolution) -> None:
    args = r.args
    if r.since(0, 5, 23) and args.disaggregation_transfer_backend in _BOOTSTRAP_PORT_OF_ITS_OWN:
        return
    port = args.disaggregation_bootstrap_port
    if port not in (r.release.defaults["disaggregation_bootstrap_port"], args.port):
        raise invalid(
            "SGLANG_RUST_SERVER serves the PD KV bootstrap registry on the api port itself; "
            f"--disaggregation-bootstrap-port {port} conflicts with --port {args.port}. Drop "
            "--disaggregation-bootstrap-port (decode nodes and the PD router must then target the prefill api port)."
        )
    r.set("disaggregation_bootstrap_port", args.port, "the Rust server has one port")


def _both(r: Resolution) -> None:
    args = r.args
    if environ.read(r, "SGLANG_DISAGG_STAGING_BUFFER") and args.disaggregation_transfer_backend not in (
        "mooncake",
        "nixl",
    ):
        raise invalid(
            "SGLANG_DISAGG_STAGING_BUFFER requires disaggregation_transfer_backend='mooncake' or 'nixl', got "
            f"'{args.disaggregation_transfer_backend}'."
        )
    if not args.enable_pd_role_switch:
        return
    # Before 0.5.22 ``dp_size`` counts attention's groups too.
    replicas = args.dp_size if r.since(0, 5, 22) else num_dp_ranks(args)
    fixed = [
        (
            not r.since(0, 5, 23) and attn_dp_enabled(args),
            (
                f"attention DP (--attn-dp-size {args.attn_dp_size})"
                if r.since(0, 5, 22)
                else "DP attention (--enable-dp-attention)"
            ),
        ),
        (args.ep_size > 1, f"expert parallelism (--ep-size {args.ep_size})"),
        (args.moe_a2a_backend != "none", f"MoE all-to-all (--moe-a2a-backend {args.moe_a2a_backend})"),
        (args.pp_size > 1, f"pipeline parallelism (--pp-size {args.pp_size})"),
        (not r.since(0, 5, 23) and replicas > 1, f"data parallelism (--dp-size {replicas})"),
        (
            r.since(0, 5, 23) and attn_dp_enabled(args) and args.enable_dp_attention_local_control_broadcast,
            "DP attention local control broadcast",
        ),
        (args.dcp_size > 1, f"decode context parallelism (--dcp-size {args.dcp_size})"),
        (
            args.speculative_algorithm is not None,
            f"speculative decoding (--speculative-algorithm {args.speculative_algorithm})",
        ),
    ]
    found = [text for holds, text in fixed if holds]
    if found:
        raise invalid(
            "--enable-pd-role-switch does not rebuild role-specific state for the following features: "
            f"{', '.join(found)}. Remove these options or drop --enable-pd-role-switch."
        )
