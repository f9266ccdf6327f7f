"""What every drafting algorithm does alike: it limits the running requests where the operator did not."""

from __future__ import annotations

from engine.sglang.resolution import Resolution

RUNNING_REQUESTS = 48


def limit_running_requests(r: Resolution) -> None:
    """48 running requests where nothing is given."""
    if r.args.max_running_requests is None:
        r.set("max_running_requests", RUNNING_REQUESTS, "for speculative decoding", layer="engine-default")
        r.warn(
            "WARNING: Max running requests is reset to 48 for speculative decoding. You can override this by "
            "explicitly "
            "setting --max-running-requests."
        )


def no_overlap_on_a_cpu(r: Resolution) -> None:
    """From 0.5.16 on, since when drafts run on a CPU too."""
    if r.args.device == "cpu" and not r.args.disable_overlap_schedule and r.since(0, 5, 16):
        r.set("disable_overlap_schedule", True, "drafting on a CPU does not overlap")
        r.warn("WARNING: Overlap schedule is not implemented for speculative decoding on CPU.")


def drop_mixed_chunk(r: Resolution, name: str) -> None:
    """Before 0.5.19 no drafting algorithm mixes prefill chunks with decoding."""
    if r.args.enable_mixed_chunk and not r.since(0, 5, 19):
        r.set("enable_mixed_chunk", False, f"{name} does not support it")
        r.warn(f"WARNING: Mixed chunked prefill is disabled because of using {name.lower()} speculative decoding.")


def one_step_one_branch(r: Resolution, name: str) -> None:
    """Algorithms that draft a block at once count as one step with one branch."""
    for field in ("speculative_num_steps", "speculative_eagle_topk"):
        value = getattr(r.args, field)
        if value is not None and int(value) != 1:
            r.warn(f"WARNING: {name} only supports {field} == 1; overriding {field}={value} to 1.")
        r.set(field, 1, f"{name} drafts a block at once")
