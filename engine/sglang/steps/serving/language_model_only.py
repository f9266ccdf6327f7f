"""``--language-model-only``: the text part of a multimodal checkpoint, without its encoder."""

from __future__ import annotations

from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid
from engine.sglang.versioned import FIRST, at

_MUSE_GLIMMER = ("MuseGlimmerForConditionalGeneration",)
_COSMOS = (*_MUSE_GLIMMER, "Cosmos3ForConditionalGeneration", "Cosmos3EdgeForConditionalGeneration")
_SUPPORTED: tuple[tuple[Version, tuple[str, ...]], ...] = (
    ((0, 5, 22), ("DeepseekV4ForCausalLM", *_COSMOS)),
    ((0, 5, 20), _COSMOS),
    (FIRST, _MUSE_GLIMMER),
)


def run(r: Resolution) -> None:
    """Flags that it excludes, and the models that have it."""
    args = r.args
    if not args.language_model_only:
        return
    for flag, name in (
        (args.encoder_only, "--encoder-only"),
        (args.language_only, "--language-only"),
        (args.enable_prefix_mm_cache, "--enable-prefix-mm-cache"),
        (args.enable_broadcast_mm_inputs_process, "--enable-broadcast-mm-inputs-process"),
        (args.mm_enable_dp_encoder, "--mm-enable-dp-encoder"),
    ):
        if flag:
            raise invalid(f"--language-model-only cannot be combined with {name}")
    served_apart = r.since(0, 5, 22) and r.model.model_type == "deepseek_v41"
    if args.disaggregation_mode != "null" and not served_apart:
        raise invalid("--language-model-only is incompatible with --disaggregation-mode prefill/decode")
    supported = at(_SUPPORTED, r.release.version)
    if not any(name in supported for name in r.model.architectures):
        raise invalid(
            f"--language-model-only does not support {list(r.model.architectures)}. Supported: {list(supported)}."
        )
