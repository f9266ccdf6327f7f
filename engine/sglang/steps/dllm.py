"""Diffusion language models (``--dllm-algorithm``): backends, pages of one block, and what they cannot do.

Source: SGLang 0.5.23, ``arg_groups/dllm_hook.py``, ``dllm/config.py`` and ``dllm/algorithm``.
"""

from __future__ import annotations

from typing import Any

from engine.sglang.derived import attention_backends
from engine.sglang.hf_config import HfConfig
from engine.sglang.resolution import Refusal, Resolution

_RENOISE = "Gemma4Renoise"
_INDEL = "JointThresholdInDel"
_ALGORITHMS = (_RENOISE, "JointThreshold", _INDEL, "LowConfidence")
_GEMMA = "DiffusionGemmaForBlockDiffusion"
_BLOCKS = {"LLaDA2MoeModelLM": 32, "SDARForCausalLM": 4, "SDARMoeForCausalLM": 4}
_MASKS = {"LLaDA2MoeModelLM": 156895, "SDARForCausalLM": 151669, "SDARMoeForCausalLM": 151669}
_RENOISE_BACKENDS = ("triton", "fa4")
_FIELDS = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
_WHY = "diffusion language models"


def run(r: Resolution) -> None:
    """Apply what the diffusion algorithm demands."""
    args = r.args
    algorithm = args.dllm_algorithm
    if algorithm is None:
        return
    unknown = algorithm not in _ALGORITHMS or (algorithm == _INDEL and not r.since(0, 5, 22))
    if unknown and r.since(0, 5, 21):
        raise Refusal("RuntimeError", f"Unknown diffusion LLM algorithm: {algorithm}")
    if r.since(0, 5, 22):
        _backend(r, algorithm)
    if algorithm == _RENOISE and r.since(0, 5, 21):
        _renoise(r)
    if not r.since(0, 5, 22):
        _backend(r, algorithm)
    if not args.disable_overlap_schedule:
        r.warn("WARNING: Overlap schedule is disabled because of using diffusion LLM inference")
        r.set("disable_overlap_schedule", True, _WHY)
    _page(r)
    _switch_off(r)


def _backend(r: Resolution, algorithm: str) -> None:
    args = r.args
    if algorithm == _RENOISE and r.since(0, 5, 21):
        if (
            r.since(0, 5, 22)
            and args.attention_backend in _RENOISE_BACKENDS
            and all(getattr(args, name) in (None, *_RENOISE_BACKENDS) for name in _FIELDS[1:])
        ):
            return
        changed = [name for name in _FIELDS if getattr(args, name) != "triton"]
        if changed:
            r.warn(f"WARNING: {algorithm} requires the triton attention backend")
        for name in changed:
            r.set(name, "triton", f"{algorithm} runs on this backend")
    elif r.graph["decode"].backend != "disabled" and args.attention_backend != "flashinfer":
        r.warn(
            "WARNING: Attention backend is set to flashinfer because of enabling cuda graph in diffusion LLM inference"
        )
        r.set("attention_backend", "flashinfer", "a decode graph of a diffusion model is captured with FlashInfer")


def _renoise(r: Resolution) -> None:
    args, hf = r.args, r.model.hf
    if args.device != "cuda":
        raise Refusal("ValueError", "DiffusionGemma currently supports CUDA/ROCm GPU execution only")
    if args.pp_size > 1:
        raise Refusal("ValueError", "DiffusionGemma does not support pipeline parallelism")
    if args.dcp_size > 1 or args.attn_cp_size > 1:
        raise Refusal("ValueError", "DiffusionGemma does not support context parallelism")
    if r.model.quantization is not None:
        raise Refusal("ValueError", "DiffusionGemma does not support quantized loading")
    tied = hf.get("tie_word_embeddings", False)
    if tied:
        text = hf.require("text_config")
        tied = isinstance(text, HfConfig) and text.get("tie_word_embeddings", False)
    if not tied:
        raise Refusal("ValueError", "DiffusionGemma requires tied word embeddings")
    if r.graph["prefill"].backend == "full" and r.since(0, 5, 22):
        prefill, _ = attention_backends(args)
        if prefill != "fa4":
            raise Refusal(
                "ValueError",
                f"Gemma4Renoise FULL prefill CUDA graphs require prefill backend 'fa4'; got '{prefill}'.",
            )
    else:
        r.set_graph("prefill", "backend", "disabled", "only the full prefill graph serves this algorithm")
    r.set("disable_radix_cache", True, _WHY)
    r.set("chunked_prefill_size", -1, _WHY)


def block_size(r: Resolution) -> int:
    """The tokens of one block.

    Raises:
        Refusal: no diffusion model, or not one for this algorithm.
    """
    arch, algorithm = r.model.arch, r.args.dllm_algorithm
    if arch == _GEMMA and r.since(0, 5, 21):
        size = int(r.model.hf.get("canvas_length", 256))
        if algorithm != _RENOISE:
            raise Refusal("ValueError", f"{arch} requires the {_RENOISE} diffusion algorithm")
    elif arch in _BLOCKS:
        size = _BLOCKS[arch]
        if algorithm == _RENOISE and r.since(0, 5, 21):
            raise Refusal("ValueError", f"{algorithm} does not support model architecture {arch}")
    else:
        raise Refusal("RuntimeError", f"Unknown diffusion LLM: {arch}")
    if algorithm == _INDEL and r.since(0, 5, 22):
        _insert_delete(r)
    return size


def _insert_delete(r: Resolution) -> None:
    hf = r.model.hf
    tokens = {name: hf.get(name) for name in ("delete_token_id", "split_token_id")}
    if None in tokens.values():
        raise Refusal(
            "RuntimeError",
            f"JointThresholdInDel is not supported for checkpoint {r.args.model_path!r}: the checkpoint must declare "
            "both delete_token_id and split_token_id. Use a checkpoint with explicit Insert/Delete support. If you are "
            "certain this checkpoint was trained for Insert/Delete decoding, declare the correct token IDs in "
            "config.json or pass them with `--json-model-override-args "
            '\'{"delete_token_id": 156930, "split_token_id": 156931}\'`. Use the token IDs defined by your '
            "checkpoint.",
        )
    for name, token in tokens.items():
        if isinstance(token, bool) or not isinstance(token, int):
            raise Refusal("ValueError", f"{name} must be an integer token ID, got {token!r}")
        if not 0 <= token < r.model.vocab_size:
            raise Refusal(
                "ValueError", f"{name} must be within the model vocabulary [0, {r.model.vocab_size}), got {token}"
            )
    mask = _MASKS.get(r.model.arch, -1)
    delete, split = tokens["delete_token_id"], tokens["split_token_id"]
    if len({mask, delete, split}) != 3:
        raise Refusal(
            "ValueError",
            f"JointThresholdInDel token IDs must be distinct, got mask_id={mask}, delete_token_id={delete}, "
            f"split_token_id={split}",
        )


def _page(r: Resolution) -> None:
    args = r.args
    if args.disable_radix_cache and not r.since(0, 5, 15):
        return
    block = block_size(r)
    if not args.disable_radix_cache and args.page_size % block != 0:
        r.warn(f"WARNING: Setting page size to {block} for diffusion LLM inference")
    elif args.page_size > block and r.since(0, 5, 15):
        r.warn(
            f"WARNING: WARNING: The page size {args.page_size} should not be larger than dllm block size {block}."
            f"Page size now falls back to {block}"
        )
    else:
        return
    r.set("page_size", block, "a page holds one diffusion block")


def _switch_off(r: Resolution) -> None:
    args: Any = r.args
    off: list[tuple[str, Any]] = []
    if not args.disable_radix_cache:
        off += [(name, False) for name in ("enable_hierarchical_cache", "enable_lmcache", "enable_flexkv")]
    if args.pp_size > 1 and r.since(0, 5, 15):
        off.append(("pp_size", 1))
    off += [("enable_lora", False)] if args.enable_lora else []
    off += [("disaggregation_mode", "null"), ("enable_mixed_chunk", False)]
    for name, value in off:
        if getattr(args, name) and getattr(args, name) != value:
            r.warn(f"WARNING: {name} is disabled because of using diffusion LLM inference")
            r.set(name, value, _WHY)
