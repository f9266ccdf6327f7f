"""How requests are spread over data-parallel ranks."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def run(r: Resolution) -> None:
    """The default by the server's role."""
    args = r.args
    if args.disaggregation_mode not in ("null", "prefill", "decode"):
        raise invalid(f"Invalid disaggregation_mode={args.disaggregation_mode!r}")
    if args.load_balance_method == "auto":
        method = "follow_bootstrap_room" if args.disaggregation_mode == "prefill" else "round_robin"
        r.fill("load_balance_method", method)
