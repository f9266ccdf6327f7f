"""``--language-model-only``: the text part of a multimodal checkpoint, without its encoder."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid

SUPPORTED = (
    "DeepseekV4ForCausalLM",
    "MuseGlimmerForConditionalGeneration",
    "Cosmos3ForConditionalGeneration",
    "Cosmos3EdgeForConditionalGeneration",
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
    if not any(name in SUPPORTED for name in r.model.architectures):
        raise invalid(
            f"--language-model-only does not support {list(r.model.architectures)}. Supported: {list(SUPPORTED)}."
        )
