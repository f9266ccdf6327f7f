"""EAGLE, EAGLE3 and STANDALONE: a draft model proposes a tree of tokens."""

from __future__ import annotations

from engine.sglang.derived import attention_backends, attn_dp_enabled
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.refusals import invalid, require
from engine.sglang.steps.speculative import iquest_q1
from engine.sglang.steps.speculative.limits import limit_running_requests, no_overlap_on_a_cpu

_DRAFT_INSIDE = frozenset(
    {
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV4ForCausalLM",
        "Glm4MoeForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "GlmMoeDsaForCausalLM",
        "BailingMoeForCausalLM",
        "BailingMoeV2ForCausalLM",
        "BailingMoeV2_5ForCausalLM",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
        "HYV3ForCausalLM",
    }
)
_SINCE_0_5_20 = frozenset({"HYV4ForCausalLM", "Qwen4ExpForConditionalGeneration"})
_WIDE = frozenset({"LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM"})
_MIXED_CHUNK = ("EAGLE", "EAGLE3")
_TREE_OVER_PAGES = ("flashinfer", "fa3", "triton")


def run(r: Resolution) -> None:
    """Draft model, steps, branches and draft tokens; then what the attention backend can verify."""
    args = r.args
    algorithm = args.speculative_algorithm
    if algorithm == "STANDALONE" and attn_dp_enabled(args):
        raise invalid("Currently standalone speculative decoding does not support dp attention.")
    limit_running_requests(r)
    no_overlap_on_a_cpu(r)
    if args.disable_overlap_schedule:
        r.warn("WARNING: Non-overlap (synchronous) spec v2 is used for eagle/eagle3/standalone speculative decoding.")
    if args.enable_mixed_chunk and (algorithm not in _MIXED_CHUNK or not r.since(0, 5, 19)):
        r.set("enable_mixed_chunk", False, f"{algorithm} does not support it")
        r.warn(f"WARNING: Mixed chunked prefill is disabled: {algorithm} speculative decoding does not support it.")
    if r.model.arch in _DRAFT_INSIDE or (r.model.arch in _SINCE_0_5_20 and r.since(0, 5, 20)):
        if args.speculative_draft_model_path is None:
            why = "the checkpoint holds its own draft layer"
            r.set("speculative_draft_model_path", args.model_path, why, layer="engine-default")
            r.set("speculative_draft_model_revision", args.revision, why, layer="engine-default")
        elif r.model.arch not in ("MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"):
            r.warn("WARNING: DeepSeek MTP does not require setting speculative_draft_model_path.")
    iquest_q1.run(r)
    _tree(r)
    if "trtllm_mha" in attention_backends(args) and args.speculative_eagle_topk > 1:
        raise invalid("trtllm_mha backend only supports topk = 1 for speculative decoding.")
    if args.speculative_use_rejection_sampling:
        _rejection_sampling(r)
    if args.speculative_eagle_topk == 1 and args.speculative_num_draft_tokens != args.speculative_num_steps + 1:
        r.warn(
            "WARNING: speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
            "speculative_eagle_topk "
            "== 1"
        )
        r.set("speculative_num_draft_tokens", args.speculative_num_steps + 1, "a chain has one token a step, and one")
    if args.speculative_eagle_topk > 1 and args.page_size > 1 and args.attention_backend not in _TREE_OVER_PAGES:
        raise invalid(
            f"speculative_eagle_topk > 1 with page_size > 1 is only supported on {_TREE_OVER_PAGES}; got "
            f"attention_backend={args.attention_backend!r}. Use page_size == 1 or one of those backends."
        )


def _tree(r: Resolution) -> None:
    args = r.args
    if args.speculative_adaptive or args.speculative_num_steps is not None:
        return
    require(args.speculative_eagle_topk is None and args.speculative_num_draft_tokens is None)
    wide = args.speculative_algorithm != "STANDALONE" and r.model.arch in _WIDE
    steps, branches, tokens = (5, 4, 8) if wide else (3, 1, 4)
    why = f"for {r.model.arch}"
    r.set("speculative_num_steps", steps, why, layer="engine-default")
    r.set("speculative_eagle_topk", branches, why, layer="engine-default")
    r.set("speculative_num_draft_tokens", tokens, why, layer="engine-default")


def _rejection_sampling(r: Resolution) -> None:
    args = r.args
    option = "--speculative-use-rejection-sampling"
    if args.speculative_algorithm not in ("EAGLE", "EAGLE3"):
        raise Refusal(
            "NotImplementedError",
            f"{option} is only supported for EAGLE / EAGLE3 / NEXTN, not "
            f"speculative_algorithm={args.speculative_algorithm}.",
        )
    if args.speculative_eagle_topk != 1:
        raise invalid(f"{option} requires --speculative-eagle-topk=1.")
    if args.enable_deterministic_inference and r.since(0, 5, 23) and not args.device.startswith("cuda"):
        raise invalid(
            "Deterministic rejection sampling is currently supported only on CUDA-compatible devices because draft "
            "proposal sampling uses a Triton hash kernel."
        )
    if args.speculative_accept_threshold_single != 1.0 or args.speculative_accept_threshold_acc != 1.0:
        raise invalid(
            f"{option} is incompatible with --speculative-accept-threshold-single / "
            "--speculative-accept-threshold-acc; "
            "rejection sampling ignores the accept thresholds."
        )
    if args.enable_deterministic_inference and not r.since(0, 5, 23):
        raise invalid(
            f"{option} is incompatible with --enable-deterministic-inference; the sampling kernel draws coins from the "
            "global RNG and is not batch-invariant."
        )
    if args.enable_multi_layer_eagle and not r.since(0, 5, 16):
        raise Refusal(
            "NotImplementedError", f"{option} is not supported with multi-layer EAGLE (--enable-multi-layer-eagle)."
        )
