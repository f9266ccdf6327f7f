"""Frozen-KV multi-token prediction, which Gemma 4's assistant drafts use."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.speculative.limits import limit_running_requests


def run(r: Resolution) -> None:
    """Running requests, and no mixed chunks."""
    limit_running_requests(r)
    if r.args.enable_mixed_chunk:
        r.set("enable_mixed_chunk", False, "Frozen-KV MTP does not support it")
        r.warn("WARNING: Mixed chunked prefill is disabled because of using Frozen-KV MTP speculative decoding.")
