"""DSpark: a draft head proposes gamma tokens; the verify window is one more."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid
from engine.sglang.steps.speculative import draft
from engine.sglang.steps.speculative.limits import drop_mixed_chunk, limit_running_requests, one_step_one_branch
from engine.sglang.versioned import FIRST, at

_GAMMA = 7
_DEVICES: tuple[tuple[Version, tuple[tuple[str, ...], str]], ...] = (
    ((0, 5, 23), (("cuda", "npu", "xpu"), "CUDA, NPU or XPU")),
    ((0, 5, 18), (("cuda", "npu"), "CUDA or NPU")),
    (FIRST, (("cuda",), "CUDA")),
)
_BESIDE_NONE: tuple[tuple[Version, tuple[tuple[str, ...], str]], ...] = (
    ((0, 5, 21), (("megamoe", "mori"), "supports moe_a2a_backend 'none' (built-in TP MoE), 'megamoe', or 'mori'")),
    ((0, 5, 18), (("megamoe",), "supports moe_a2a_backend 'none' (built-in TP MoE) or 'megamoe'")),
    (FIRST, ((), "only supports the built-in TP MoE (moe_a2a_backend='none')")),
)
_BUNDLED = ("dspark_block_size", "dspark_markov_rank", "dspark_noise_token_id", "dspark_target_layer_ids")


def run(r: Resolution) -> None:
    """Topology, draft model, gamma."""
    args = r.args
    devices, names = at(_DEVICES, r.release.version)
    if not args.device.startswith(devices):
        raise invalid(f"DSpark speculative decoding only supports {names} device.")
    # Before 0.5.18 the flag counted as it was written, even at a width of one.
    if args.attn_dp_size > 1 or (not r.since(0, 5, 18) and "enable_dp_attention" in r.given):
        _attention_dp(r)
    if args.pp_size != 1 and not r.since(0, 5, 21):
        raise invalid("Currently DSpark speculative decoding only supports pp_size == 1.")
    if args.pp_size != 1 and args.disaggregation_mode != "prefill":
        raise invalid(
            "DSpark pipeline parallelism requires PD prefill; decode and non-disaggregated serving require pp_size "
            "== 1."
        )
    if args.speculative_draft_model_path is None:
        _bundled(r)
    one_step_one_branch(r, "DSpark")
    _gamma(r)
    limit_running_requests(r)
    drop_mixed_chunk(r, "DSpark")


def _attention_dp(r: Resolution) -> None:
    args = r.args
    backend = args.moe_a2a_backend
    if not args.enable_dp_lm_head:
        raise invalid("DSpark with dp attention requires --enable-dp-lm-head.")
    others, named = at(_BESIDE_NONE, r.release.version)
    if backend not in ("none", *others):
        raise invalid(f"DSpark with dp attention {named}, got {backend!r}.")
    coordinated = r.since(0, 5, 22) and environ.read(r, "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION")
    if (backend != "none" or coordinated) and environ.read(r, "SGLANG_RAGGED_VERIFY_MODE") != "static":
        raise invalid(
            "DSpark DP MoE or prefill coordination requires SGLANG_RAGGED_VERIFY_MODE=static."
            if r.since(0, 5, 22)
            else f"DSpark with dp attention + moe_a2a_backend={backend!r} requires SGLANG_RAGGED_VERIFY_MODE=static."
        )
    if args.attn_cp_size > 1:
        raise invalid(f"DSpark with dp attention does not support context parallel (attn_cp_size={args.attn_cp_size}).")
    drafts = args.speculative_moe_a2a_backend
    if drafts is not None and drafts != backend:
        raise invalid(
            "DSpark ignores --speculative-moe-a2a-backend; with dp attention it must match the target "
            f"moe_a2a_backend={backend!r} (got {drafts!r})."
        )


def _bundled(r: Resolution) -> None:
    """The draft inside the target's checkpoint, by the config's keys; a ``dspark`` subfolder of it cannot be seen."""
    if not any(r.model.hf.get(key) is not None for key in _BUNDLED):
        raise invalid("DSpark dense speculative decoding requires setting --speculative-draft-model-path.")
    why = "the checkpoint holds its own draft head"
    r.set("speculative_draft_model_path", r.args.model_path, why, layer="engine-default")
    r.set("speculative_draft_model_revision", r.args.revision, why, layer="engine-default")


def _gamma(r: Resolution) -> None:
    args = r.args
    tokens = args.speculative_num_draft_tokens
    gamma: int | None
    if args.speculative_dspark_block_size is not None:
        gamma = int(args.speculative_dspark_block_size)
        if gamma <= 0:
            raise invalid(
                "DSpark requires --speculative-dspark-block-size to be positive, got "
                f"{args.speculative_dspark_block_size}."
            )
    else:
        gamma = _from_checkpoint(r)
        if gamma is None and tokens is None:
            gamma = _GAMMA
            r.warn("WARNING: DSpark gamma is not set; defaulting to 7.")
    if gamma is not None:
        window = gamma + 1
        if tokens is not None and int(tokens) != window:
            raise invalid(
                f"DSpark speculative_num_draft_tokens must equal gamma + 1 (= {window} for gamma={gamma}), but got "
                f"speculative_num_draft_tokens={tokens}."
            )
        r.set("speculative_num_draft_tokens", window, "gamma and one")
    if int(args.speculative_num_draft_tokens) < 2:
        raise invalid(
            f"DSpark speculative_num_draft_tokens must be >= 2 (= gamma + 1), got {args.speculative_num_draft_tokens}."
        )


def _from_checkpoint(r: Resolution) -> int | None:
    config = draft.draft_config(r)
    if config is None:
        return None
    try:
        own = config.get("dspark_block_size")
        return int(own) if own is not None else draft.block_size(config)
    except (TypeError, ValueError) as error:
        r.warn(
            f"WARNING: Failed to read DSpark draft config; preserving explicit/default gamma resolution. Error: {error}"
        )
        return None
