"""Which algorithm drafts, what all of them share, then the algorithm's own rules."""

from __future__ import annotations

from collections.abc import Callable

from engine.sglang import environ
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid, require, unguarded
from engine.sglang.steps.speculative import adaptive, dflash, draft, dspark, eagle, frozen_kv_mtp, ngram, uno
from engine.sglang.versioned import FIRST, at

_GEMMA4_DRAFTS = ("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")
_RULES: dict[str, Callable[[Resolution], None] | None] = {
    "DFLASH": dflash.run,
    "UNO": uno.run,
    "DSPARK": dspark.run,
    "EAGLE": eagle.run,
    "EAGLE3": eagle.run,
    "STANDALONE": eagle.run,
    "FROZEN_KV_MTP": frozen_kv_mtp.run,
    "NGRAM": ngram.run,
    "NONE": None,
}
_SINCE: dict[str, Version] = {"DSPARK": (0, 5, 16), "UNO": (0, 5, 20)}
_VERIFY_MODES = ("static", "cap-accept", "compact")
_COORDINATED: tuple[tuple[Version, tuple[tuple[str, ...], str]], ...] = (
    ((0, 5, 22), (("EAGLE", "EAGLE3", "DSPARK"), "EAGLE, EAGLE3 or DSPARK")),
    (FIRST, (("EAGLE", "EAGLE3"), "EAGLE or EAGLE3")),
)


@unguarded
def run(r: Resolution) -> None:
    """Names, then options, then rules."""
    args = r.args
    if args.speculative_draft_model_path is not None and args.speculative_draft_model_revision is None:
        r.fill("speculative_draft_model_revision", "main")
    if args.speculative_moe_runner_backend is None:
        r.fill("speculative_moe_runner_backend", _draft_runner(r))
    if args.speculative_algorithm is not None:
        r.set("speculative_algorithm", args.speculative_algorithm.upper(), "names are upper case")
    _resolve_name(r)
    algorithm = args.speculative_algorithm
    if (
        r.since(0, 5, 23)  # before, the roles' step says so
        and args.disaggregation_mode == "decode"
        and args.disaggregation_decode_enable_radix_cache
        and algorithm not in (None, "DSPARK", "EAGLE", "EAGLE3")
    ):
        raise invalid(
            "--disaggregation-decode-enable-radix-cache is incompatible with speculative decoding "
            f"(--speculative-algorithm {algorithm})"
        )
    _block_verification(r)
    _draft_window(r)
    if algorithm is not None and (algorithm not in _RULES or r.release.version < _SINCE.get(algorithm, FIRST)):
        raise invalid(f"Unknown speculative algorithm name: {algorithm}")
    if args.__dict__.get("speculative_skip_dp_mlp_sync"):  # gone in 0.5.23
        require(
            algorithm == "EAGLE",
            f"--speculative-skip-dp-mlp-sync is only supported with speculative_algorithm == EAGLE, got {algorithm}.",
        )
    coordinated, names = at(_COORDINATED, r.release.version)
    if environ.read(r, "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION") and (
        algorithm not in coordinated or args.enable_multi_layer_eagle
    ):
        raise invalid(f"DP spec/prefill coordination requires single-layer {names}")
    if args.speculative_adaptive:
        adaptive.run(r)
    if algorithm is None:
        return
    mode = environ.read(r, "SGLANG_RAGGED_VERIFY_MODE")
    if mode not in _VERIFY_MODES:
        names = ", ".join(repr(name) for name in _VERIFY_MODES)
        raise invalid(f"invalid SGLANG_RAGGED_VERIFY_MODE={mode!r}; expected one of {names}")
    rules = _RULES[algorithm]
    if rules is not None:
        rules(r)


def _draft_runner(r: Resolution) -> str:
    target = str(r.args.moe_runner_backend)
    if target == "flashinfer_megamoe" and r.since(0, 5, 22):
        return "flashinfer_trtllm"
    return "auto" if target.startswith("lora_") else target


def _resolve_name(r: Resolution) -> None:
    """NEXTN is EAGLE; with a Gemma 4 assistant as draft both are FROZEN_KV_MTP."""
    args = r.args
    config = draft.draft_config(r)
    names = (config.get("architectures") or ()) if config is not None else ()
    gemma = any(name in _GEMMA4_DRAFTS for name in names)
    if args.speculative_algorithm == "EAGLE3" and gemma:
        raise invalid(
            "Gemma4AssistantForCausalLM draft requires --speculative-algorithm NEXTN or EAGLE; EAGLE3 is not supported "
            "for this draft architecture."
        )
    if args.speculative_algorithm in ("NEXTN", "EAGLE"):
        r.set("speculative_algorithm", "FROZEN_KV_MTP" if gemma else "EAGLE", "an alias")


def _block_verification(r: Resolution) -> None:
    args = r.args
    if not args.speculative_use_block_verification:
        return
    if args.speculative_algorithm not in ("EAGLE", "EAGLE3", "DFLASH", "DSPARK"):
        raise invalid("--speculative-use-block-verification only supports EAGLE / EAGLE3 / NEXTN / DFLASH / DSPARK.")
    if args.device != "cuda":
        raise invalid("--speculative-use-block-verification only supports CUDA or ROCm.")
    if args.speculative_algorithm in ("EAGLE", "EAGLE3"):
        r.set("speculative_use_rejection_sampling", True, "block verification needs sampled proposals")


def _draft_window(r: Resolution) -> None:
    args = r.args
    window, sink = args.speculative_draft_window_size, args.speculative_draft_sink_size
    if window is not None:
        if int(window) <= 0:
            raise invalid(f"--speculative-draft-window-size must be positive, got {int(window)}.")
        if args.speculative_algorithm not in ("EAGLE", "EAGLE3", "DFLASH"):
            r.warn(
                "WARNING: --speculative-draft-window-size has no effect with speculative_algorithm="
                f"{args.speculative_algorithm} (honored by DFLASH, Llama EAGLE-3, and the EAGLE/MTP/NEXTN draft-decode "
                "path on the Triton/FlashInfer draft backends)."
            )
    if sink is not None:
        if int(sink) < 0:
            raise invalid(f"--speculative-draft-sink-size must be non-negative, got {int(sink)}.")
        if window is None:
            raise invalid("--speculative-draft-sink-size requires --speculative-draft-window-size.")
