"""Arguments that the engine fills in before anything is decided: device, draft quantization, the unquant opt-out."""

from __future__ import annotations

from engine.sglang.resolution import Resolution


def run(r: Resolution) -> None:
    """Device without its index; the draft model's quantization; ``--quantization unquant`` becomes none."""
    args = r.args
    if args.tokenizer_path is None:
        r.set("tokenizer_path", args.model_path, "the model's own", layer="engine-default")
    if args.served_model_name is None:
        r.set("served_model_name", args.model_path, "the model's own", layer="engine-default")
    device = args.device or "cuda"
    r.set("device", device.split(":")[0], "the node has a CUDA GPU", layer="engine-default")
    if args.mm_process_config is None:
        r.set("mm_process_config", {}, "nothing given", layer="engine-default")
    args._speculative_draft_quantization_explicitly_set = args.speculative_draft_model_quantization is not None
    if args.speculative_draft_model_quantization is None:
        r.set("speculative_draft_model_quantization", args.quantization, "the target's", layer="engine-default")
    args._quantization_explicitly_unset = args.quantization == "unquant"
    if args.quantization == "unquant":
        r.set("quantization", None, "unquant means none, and keeps detection from choosing one")
    if args.speculative_draft_model_quantization == "unquant":
        r.set("speculative_draft_model_quantization", None, "unquant means none")
