"""Encoder and language model on separate servers."""

from __future__ import annotations

from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid, unguarded
from engine.sglang.steps.serving import ib_devices, language_model_only
from engine.sglang.versioned import FIRST, at

_MUSE = "MuseSparkForConditionalGeneration"
_SUPPORTED = frozenset(
    {
        "Qwen2VLForConditionalGeneration",
        "Qwen3VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "Qwen3OmniMoeForConditionalGeneration",
        "Qwen2AudioForConditionalGeneration",
        "Qwen2_5OmniForConditionalGeneration",
        "KimiVLForConditionalGeneration",
        "KimiK25ForConditionalGeneration",
        "KimiK3ForConditionalGeneration",
        "MiMoV2ForCausalLM",
    }
)
_DOTS3 = _SUPPORTED | {"Dots3NoteForCausalLM"}
_GLM5 = _DOTS3 | {"Glm5NextForConditionalGeneration"}
_TITLES = "Qwen2VL, Qwen3VL, Qwen3.5, InternS2, Qwen2Audio, Qwen2.5Omni"
_GLM5_TITLES = f"{_TITLES}, Dots3-Note, Kimi, MiMoV2, GLM5Next"
_BY_RELEASE: tuple[tuple[Version, tuple[frozenset[str], str]], ...] = (
    (
        (0, 5, 23),
        (_GLM5 | {"MiniMaxM3SparseForConditionalGeneration", _MUSE}, f"{_GLM5_TITLES}, MiniMax-M3, MuseSpark"),
    ),
    ((0, 5, 20), (_GLM5, _GLM5_TITLES)),
    ((0, 5, 19), (_DOTS3, f"{_TITLES}, Dots3-Note, Kimi, MiMoV2")),
    ((0, 5, 17), (_SUPPORTED, f"{_TITLES}, Kimi, MiMoV2")),
    (FIRST, (_SUPPORTED - {"KimiK3ForConditionalGeneration"}, f"{_TITLES}, Kimi, MiMoV2")),
)


@unguarded
def run(r: Resolution) -> None:
    """Flags that exclude each other, InfiniBand devices, models that can be split."""
    args = r.args
    language_model_only.run(r)
    if args.enable_prefix_mm_cache and not args.encoder_only:
        raise invalid("--enable-prefix-mm-cache requires --encoder-only to be enabled")
    if args.encoder_only and args.language_only:
        raise invalid("Cannot set --encoder-only and --language-only together")
    if args.encoder_only and args.disaggregation_mode != "null":
        raise invalid("Cannot set --encoder-only and --disaggregation-mode prefill/decode together")
    mooncake = args.disaggregation_transfer_backend == "mooncake" and args.disaggregation_mode in ("prefill", "decode")
    if mooncake or args.encoder_transfer_backend == "mooncake":
        ib_devices.check(r, args.disaggregation_ib_device)
    arch = r.model.arch
    if args.encoder_transfer_backend == "auto":
        chosen = (
            "zmq_to_tokenizer" if arch == "KimiK3ForConditionalGeneration" and args.tp_size > 1 else "zmq_to_scheduler"
        )
        r.fill("encoder_transfer_backend", chosen)
    supported, titles = at(_BY_RELEASE, r.release.version)
    if (args.encoder_only or args.language_only) and arch not in supported:
        raise invalid(
            f"Model type {arch} is not supported for encoder disaggregation. Supported architectures: {titles}."
        )
    if r.since(0, 5, 23) and arch == _MUSE and args.language_only and args.enable_adaptive_dispatch_to_encoder:
        raise invalid(
            "Muse language-only servers do not load local encoders; --enable-adaptive-dispatch-to-encoder is not "
            "supported."
        )
