"""Expert load balancing: the recorder, and which replica of an expert a token goes to."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, require

_METRIC = "SGLANG_ENABLE_EPLB_BALANCEDNESS_METRIC"


def retired_metric(r: Resolution) -> None:
    """A variable that an option replaced; from 0.5.18 to 0.5.20 it is refused."""
    if environ.is_set(r, _METRIC):
        raise invalid(
            f"{_METRIC} is no longer supported. Use --expert-balancedness-report-mode with one of: off, server_log, "
            "prometheus, both."
        )


def run(r: Resolution) -> None:
    """Recorder and dispatch defaults; a choice per rank needs an all-to-all backend."""
    args = r.args
    if args.enable_eplb and args.expert_distribution_recorder_mode is None:
        r.set("expert_distribution_recorder_mode", "stat", "expert load balancing needs the recorder")
        r.warn("WARNING: EPLB is enabled. The expert_distribution_recorder_mode is automatically set.")
    same_everywhere = args.moe_a2a_backend == "none" and r.since(0, 5, 17)
    if (args.enable_eplb or args.init_expert_location != "trivial") and args.ep_dispatch_algorithm is None:
        chosen = "dynamic" if same_everywhere else "static"
        r.set("ep_dispatch_algorithm", chosen, "nothing given", layer="engine-default")
    if same_everywhere and args.ep_dispatch_algorithm in ("static", "lp"):
        raise invalid(
            f"--ep-dispatch-algorithm {args.ep_dispatch_algorithm} picks a different physical replica per rank, which "
            "only holds up when an a2a backend routes each token to a single rank. Use --ep-dispatch-algorithm dynamic "
            "with --moe-a2a-backend none."
        )
    if args.enable_eplb and args.ep_join_mode != "scale":
        require(args.ep_size > 1)
