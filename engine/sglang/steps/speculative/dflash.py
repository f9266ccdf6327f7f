"""DFLASH: a draft model proposes a whole block."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attention_backends, attn_dp_enabled
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid
from engine.sglang.steps.speculative import draft
from engine.sglang.steps.speculative.limits import drop_mixed_chunk, limit_running_requests, one_step_one_branch

_BLOCK = 16
_DRAFT_BACKENDS = ("flashinfer", "fa3", "fa4", "triton", "ascend")


def run(r: Resolution) -> None:
    """Topology, draft model, block size, the draft's attention backend."""
    args = r.args
    if not args.device.startswith("cuda") and args.device not in ("npu", "xpu"):
        raise invalid(f"DFLASH speculative decoding is not supported on device {args.device!r}.")
    if attn_dp_enabled(args):
        _attention_dp(r)
    if args.pp_size != 1:
        raise invalid("Currently DFLASH speculative decoding only supports pp_size == 1.")
    if args.speculative_draft_model_path is None:
        raise invalid("DFLASH speculative decoding requires setting --speculative-draft-model-path.")
    one_step_one_branch(r, "DFLASH")
    _block_size(r)
    window, tokens = args.speculative_draft_window_size, int(args.speculative_num_draft_tokens)
    if window is not None and window < tokens:
        raise invalid(
            "--speculative-draft-window-size must be >= --speculative-num-draft-tokens (block_size). "
            f"window_size={window}, block_size={tokens}."
        )
    if r.since(0, 5, 15):
        _attention_backend(r)
    limit_running_requests(r)
    drop_mixed_chunk(r, "DFLASH")


def _attention_dp(r: Resolution) -> None:
    args = r.args
    if not r.since(0, 5, 23):
        where = " on non-NPU devices" if r.since(0, 5, 20) else ""
        raise invalid(f"Currently DFLASH speculative decoding does not support dp attention{where}.")
    if not args.device.startswith("cuda"):
        raise invalid("DFLASH with dp attention requires CUDA or NPU.")
    if not args.enable_dp_lm_head:
        raise invalid("DFLASH with dp attention requires --enable-dp-lm-head.")
    if args.attn_cp_size != 1:
        raise invalid("DFLASH with dp attention does not support context parallel.")
    if environ.read(r, "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION"):
        raise invalid("DFLASH with dp attention requires SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION=0.")


def _block_size(r: Resolution) -> None:
    args = r.args
    size, tokens = args.speculative_dflash_block_size, args.speculative_num_draft_tokens
    if size is not None:
        if int(size) <= 0:
            raise invalid(f"DFLASH requires --speculative-dflash-block-size to be positive, got {size}.")
        if tokens is not None and int(tokens) != int(size):
            raise invalid(
                "Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but they differ. For "
                f"DFLASH they must match. speculative_num_draft_tokens={tokens}, speculative_dflash_block_size={size}."
            )
        r.set("speculative_num_draft_tokens", int(size), "--speculative-dflash-block-size")
    if args.speculative_num_draft_tokens is not None:
        return
    config = draft.draft_config(r)
    inferred = None
    if config is not None:
        try:
            inferred = draft.block_size(config)
        except (TypeError, ValueError) as error:
            r.warn(
                "WARNING: Failed to infer DFLASH block_size from draft model config; defaulting "
                f"speculative_num_draft_tokens to 16. Error: {error}"
            )
    if inferred is None:
        r.warn("WARNING: speculative_num_draft_tokens is not set; defaulting to 16 for DFLASH.")
    r.set("speculative_num_draft_tokens", inferred or _BLOCK, "the draft's block size", layer="engine-default")


def _attention_backend(r: Resolution) -> None:
    """The draft worker's attention backend, final here."""
    args = r.args
    backend = args.speculative_draft_attention_backend or attention_backends(args)[0]
    if backend is None:
        backend = "flashinfer"
    elif backend not in _draft_backends(r):
        r.warn(f"WARNING: DFLASH draft worker does not support attention_backend {backend!r}. Falling back.")
        backend = "flashinfer"
    elif backend == "trtllm_mha":
        config = draft.draft_config(r)
        if config is not None and not _suits_trtllm(r):
            backend = "fa4" if r.since(0, 5, 23) and platform_of(r.hardware).is_sm100 else "flashinfer"
    r.set("speculative_draft_attention_backend", backend, "what the draft worker supports")


def _draft_backends(r: Resolution) -> tuple[str, ...]:
    """What a draft worker runs on; before 0.5.19 the list stood inside the engine's function."""
    named = r.release.tables["choices"].get("DRAFT_ATTENTION_BACKEND_CHOICES")
    if named is not None:
        return tuple(named)
    return (*_DRAFT_BACKENDS, "trtllm_mha") if r.since(0, 5, 17) else _DRAFT_BACKENDS


def _suits_trtllm(r: Resolution) -> bool:
    text = r.model.text
    kinds = text.get("layer_types")
    sliding = bool(kinds) and len(kinds) == text.get("num_hidden_layers") and set(kinds) == {"sliding_attention"}
    return sliding or text.get("is_causal") is True
