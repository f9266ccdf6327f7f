"""DeepEP v2: prefill reads counts on the host and runs eagerly; decode keeps its graph; buffers are checked last."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import connector_type
from engine.sglang.resolution import Resolution
from engine.sglang.steps.memory.post_capture import max_prefill_buffer_tokens
from engine.sglang.steps.moe.graph_tokens import decode_graph_tokens
from engine.sglang.steps.refusals import invalid, unguarded

_VARIABLE = "SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
_VALIDATED = frozenset(
    {
        "DeepseekV3ForCausalLM",
        "DeepseekV4ForCausalLM",
        "Qwen3MoeForCausalLM",
        "Glm5NextForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "MiMoV2ForCausalLM",
        "MiMoV2FlashForCausalLM",
    }
)


_BEFORE_0_5_21 = ("DeepseekV3ForCausalLM", "DeepseekV4ForCausalLM", "Qwen3MoeForCausalLM")


def _model(r: Resolution) -> None:
    args = r.args
    if connector_type(args.model_path) == "instance":
        raise invalid(
            "DeepEP v2 MoE cannot validate a model loaded through an instance connector. Load it from a model path or "
            "use --moe-a2a-backend deepep."
        )
    if not r.since(0, 5, 21):
        if r.model.arch not in _BEFORE_0_5_21:
            raise invalid(
                f"DeepEP v2 MoE is not validated for {r.model.arch!r}; supported architectures are "
                f"{list(_BEFORE_0_5_21)}. Other model workflows may require an all-reduce after A2A combine. Use "
                "--moe-a2a-backend deepep."
            )
    elif r.model.arch not in _VALIDATED:
        raise invalid(
            f"DeepEP v2 MoE is not validated for {r.model.arch!r}. The model package must register its architecture "
            "with register_deepep_v2_model, because its combine and post-expert reduction semantics must be validated "
            "first."
        )


def run(r: Resolution) -> None:
    """Model, runner and modes; then no prefill graph, whoever asked for one."""
    args = r.args
    _model(r)
    if args.enable_deterministic_inference and not r.since(0, 5, 21):
        raise invalid(
            "DeepEP v2 does not forward deterministic=True to ElasticBuffer, so deterministic sorting remains "
            "disabled. Disable --enable-deterministic-inference or use --moe-a2a-backend deepep."
        )
    runner = args.moe_runner_backend
    if runner == "auto":
        r.set("moe_runner_backend", "deep_gemm", "DeepEP v2 runs on DeepGEMM", layer="engine-default")
        r.warn("WARNING: DeepEP v2 MoE: resolved --moe-runner-backend auto -> deep_gemm.")
    elif runner != "deep_gemm":
        raise invalid(
            f"DeepEP v2 MoE currently supports only --moe-runner-backend deep_gemm. Got {runner!r}. Add a runner "
            "adapter before enabling DeepEP v2 with other MoE runners."
        )
    if args.enable_two_batch_overlap or args.enable_single_batch_overlap:
        raise invalid(
            "DeepEP v2 MoE has not implemented the TBO/SBO overlap hooks yet. Disable --enable-two-batch-overlap and "
            "--enable-single-batch-overlap when using --moe-a2a-backend deepep_v2."
        )
    if args.enforce_shared_experts_fusion:
        raise invalid(
            "DeepEP v2 MoE has not validated fused shared experts yet. Remove --enforce-shared-experts-fusion when "
            "using --moe-a2a-backend deepep_v2."
        )
    if args.deepep_v2_mode == "direct" and args.nnodes > 1 and r.since(0, 5, 22):
        raise invalid(
            f"--deepep-v2-mode direct is NVLink-only and cannot run across nodes (nnodes={args.nnodes}); pass "
            "--deepep-v2-mode hybrid."
        )
    r.set_graph("prefill", "backend", "disabled", "DeepEP v2 reads counts on the host during prefill")
    r.warn(
        "WARNING: DeepEP v2 MoE is enabled. The expert parallel size is adjusted to be the same as the tensor parallel "
        f"size[{args.tp_size}]."
    )


def draft(r: Resolution) -> None:
    """The draft model cannot use DeepEP v2, be it named or inherited."""
    args = r.args
    backend = args.speculative_moe_a2a_backend
    if backend is None and args.speculative_algorithm and args.speculative_algorithm.upper() != "NGRAM":
        backend = args.moe_a2a_backend
    if backend == "deepep_v2":
        raise invalid(
            "DeepEP v2 MoE is not validated as a speculative draft backend. Select another "
            "--speculative-moe-a2a-backend."
        )


@unguarded
def budget(r: Resolution) -> None:
    """The dispatch buffer holds one rank's share of a prefill batch, and the largest decode graph."""
    args = r.args
    if args.moe_a2a_backend != "deepep_v2":
        return
    capacity = environ.read(r, _VARIABLE)
    if args.disaggregation_mode != "decode":
        ceiling = max_prefill_buffer_tokens(r) or args.max_prefill_tokens or 0
        # Before 0.5.22 every rank was taken to dispatch the whole batch.
        ranks = max(1, args.tp_size // args.attn_dp_size) if r.since(0, 5, 22) else 1
        needed = -(-ceiling // ranks)
        if needed > capacity:
            raise invalid(
                f"DeepEP v2 per-rank prefill budget exceeds {_VARIABLE}: required={needed}, capacity={capacity}. Raise "
                "the environment value or lower --chunked-prefill-size/--max-prefill-tokens."
            )
    requests, tokens = decode_graph_tokens(r)
    if requests * tokens > capacity:
        raise invalid(
            f"DeepEP v2 per-rank decode CUDA graph exceeds {_VARIABLE}: required={requests * tokens}, "
            f"capacity={capacity} (requests={requests}, tokens/request={tokens}). Raise the environment value or lower "
            f"--cuda-graph-max-bs{'-decode' if r.since(0, 5, 20) else ''}."
        )
