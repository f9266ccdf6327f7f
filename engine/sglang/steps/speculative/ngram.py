"""NGRAM: drafts come from a corpus of earlier tokens; there is no draft model."""

from __future__ import annotations

from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid
from engine.sglang.steps.speculative.limits import limit_running_requests, no_overlap_on_a_cpu
from engine.sglang.versioned import FIRST, at

_DRAFT_TOKENS = 12
_DEVICES: tuple[tuple[Version, tuple[tuple[str, ...], str]], ...] = (
    ((0, 5, 21), (("cuda", "cpu", "xpu"), "CUDA, CPU, or XPU devices")),
    ((0, 5, 16), (("cuda", "cpu"), "CUDA or CPU devices")),
    (FIRST, (("cuda",), "CUDA device")),
)


def run(r: Resolution) -> None:
    """Branches are the breadth of its search; a tree over pages needs FlashInfer."""
    args = r.args
    devices, named = at(_DEVICES, r.release.version)
    if args.device not in devices:
        raise invalid(f"Ngram speculative decoding only supports {named}.")
    no_overlap_on_a_cpu(r)
    limit_running_requests(r)
    r.set("enable_mixed_chunk", False, "NGRAM does not support it")
    r.set("speculative_eagle_topk", args.speculative_ngram_max_bfs_breadth, "--speculative-ngram-max-bfs-breadth")
    if args.speculative_num_draft_tokens is None:
        r.set("speculative_num_draft_tokens", _DRAFT_TOKENS, "for NGRAM", layer="engine-default")
        r.warn(
            "WARNING: speculative_num_draft_tokens is set to 12 by default for ngram speculative decoding. You can "
            "override this by explicitly setting --speculative-num-draft-tokens."
        )
    if args.speculative_num_steps is None:
        steps = args.speculative_num_draft_tokens // args.speculative_eagle_topk
        r.set("speculative_num_steps", steps, "draft tokens over branches", layer="engine-default")
    if args.speculative_ngram_external_corpus_path is not None:
        _corpus(r)
    r.warn("WARNING: The mixed chunked prefill are disabled because of using ngram speculative decoding.")
    branches, page = args.speculative_eagle_topk, args.page_size
    if branches > 1 and page > 1 and args.attention_backend != "flashinfer":
        raise invalid(
            f"speculative_eagle_topk({branches}) > 1 with page_size({page}) > 1 is unstable and produces incorrect "
            "results for paged attention backends. This combination is only supported for the 'flashinfer' backend."
        )
    if attn_dp_enabled(args):
        raise invalid("Currently ngram speculative decoding does not support dp attention.")


def _corpus(r: Resolution) -> None:
    args = r.args
    budget = args.speculative_ngram_external_sam_budget
    for option, value in (
        ("--speculative-ngram-external-sam-budget", budget),
        ("--speculative-ngram-external-corpus-max-tokens", args.speculative_ngram_external_corpus_max_tokens),
    ):
        if value <= 0:
            raise invalid(f"{option} must be positive when --speculative-ngram-external-corpus-path is set.")
    most = args.speculative_num_draft_tokens - 1
    if budget > most:
        raise invalid(
            "speculative_ngram_external_sam_budget must be less than or equal to "
            f"speculative_num_draft_tokens - 1 ({most})."
        )
