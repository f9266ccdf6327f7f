"""How weights are loaded: what the weight cache excludes, and which remote loads fall back."""

from __future__ import annotations

from engine.sglang.resolution import Refusal, Resolution


def run(r: Resolution) -> None:
    """Fall back from incomplete remote-instance settings; refuse a weight cache with speculative decoding."""
    args = r.args
    if args.load_format == "remote_instance":
        _remote_instance(r)
    if args.weight_cache_mode != "off" and args.speculative_algorithm is not None:
        raise Refusal(
            "ValueError",
            "--weight-cache-mode is not supported together with speculative decoding (--speculative-algorithm): the "
            "weight cache daemon does not export the draft model's weights. Disable one of them "
            "(--weight-cache-mode off) for this configuration.",
        )


def _remote_instance(r: Resolution) -> None:
    args = r.args
    backend = args.remote_instance_weight_loader_backend
    seed = (
        args.remote_instance_weight_loader_seed_instance_ip,
        args.remote_instance_weight_loader_seed_instance_service_port,
    )
    if backend != "modelexpress" and None in seed:
        why = "incomplete remote instance weight loader settings"
    elif backend == "nccl" and args.remote_instance_weight_loader_send_weights_group_ports is None:
        why = "incomplete remote instance weight loader NCCL group ports settings"
    else:
        return
    r.warn(f"WARNING: Fallback load_format to 'auto' due to {why}.")
    r.set("load_format", "auto", why)
