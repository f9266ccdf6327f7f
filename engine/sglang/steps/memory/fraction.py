"""The static memory fraction: weights and KV pool over the GPU's memory, where it is not given.

What is left out of it: activations by the tokens of a batch, graphs by their number and size, DeepEP's buffers, and for
vision models a share by the size of the vision tower.
"""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled, gpu_memory_mib, uses_mla
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.memory.post_capture import planned

_VLM_MIB = 8 * 1024


def run(r: Resolution) -> None:
    """Set ``mem_fraction_static`` and the symmetric-memory preallocation."""
    if r.args.mem_fraction_static is None:
        try:
            fraction = _fraction(r)
        except TypeError as error:  # a value in the JSON that is no number
            raise Refusal("TypeError", str(error)) from None
        r.set(
            "mem_fraction_static",
            fraction,
            "what activations and graphs leave of the GPU's memory",
            layer="engine-default",
        )
    if r.args.enable_symm_mem and not environ.is_set(r, "SGLANG_SYMM_MEM_PREALLOC_GB_SIZE"):
        environ.put(r, "SGLANG_SYMM_MEM_PREALLOC_GB_SIZE", 4)
        r.warn(
            "WARNING: Symmetric memory is enabled, setting symmetric memory prealloc size to 4GB as default."
            "Use environment variable SGLANG_SYMM_MEM_PREALLOC_GB_SIZE to change the prealloc size."
        )


def _fraction(r: Resolution) -> float:
    args, memory = r.args, gpu_memory_mib(r)
    post_capture = planned(r)
    if post_capture:
        floor = 1536 if r.since(0, 5, 18) else 512
        reserved = floor + args.tp_size * args.pp_size / 8 * 1024
    elif not r.since(0, 5, 15):
        reserved = _whatever_the_role(r)
    else:
        reserved = 512 + _activation_tokens(r) * 1.5 + args.tp_size * args.pp_size / 8 * 1024 + _graphs(r)
        if memory > 60 * 1024:
            reserved = max(reserved, 10 * 1024)
        reserved += _deepep(r)
    fraction = round((memory - reserved) / memory, 3)
    is_vlm = (
        r.model.is_multimodal
        and not args.language_only
        and not args.language_model_only
        and (args.disaggregation_mode != "decode" or not r.since(0, 5, 17))
    )
    return _for_vision(r, fraction, post_capture=post_capture) if is_vlm else fraction


def _whatever_the_role(r: Resolution) -> float:
    """MiB until 0.5.14: decode graphs count even where none is captured, and no role of a server matters."""
    args, prefill = r.args, r.graph["prefill"]
    largest = r.graph["decode"].max_bs or 0
    tokens: int = args.chunked_prefill_size if args.chunked_prefill_size > 0 else args.max_prefill_tokens
    reserved = 512 + max(tokens, 2048) * 1.5
    reserved += largest * 2
    reserved += args.tp_size * args.pp_size / 8 * 1024
    if attn_dp_enabled(args):
        reserved += largest * args.attn_dp_size * (4.5 if largest > 300 else 3)
    if prefill.backend != "disabled":
        reserved += 1.5 * 1024 if uses_mla(r) else len(prefill.bs or ()) * 8
    return float(max(reserved, 10 * 1024) if gpu_memory_mib(r) > 60 * 1024 else reserved)


def _activation_tokens(r: Resolution) -> int:
    """The tokens of one batch that activations scale with, at least 2,048."""
    args = r.args
    if args.disaggregation_mode == "decode":
        requests = args.max_running_requests or r.graph["decode"].max_bs or 1
        return max(requests * (args.speculative_num_draft_tokens or 1), 2048)
    tokens: int = args.chunked_prefill_size if args.chunked_prefill_size > 0 else args.max_prefill_tokens
    return max(tokens, 2048)


def _graphs(r: Resolution) -> float:
    """MiB for the graphs of both phases."""
    args, decode, prefill = r.args, r.graph["decode"], r.graph["prefill"]
    reserved = 0.0
    if args.disaggregation_mode != "prefill":
        largest = decode.max_bs or 0
        if decode.backend != "disabled":
            reserved += largest * 2
        if attn_dp_enabled(args):
            reserved += largest * args.attn_dp_size * 3
            if largest > 300:
                reserved += largest * args.attn_dp_size * 1.5
    if args.disaggregation_mode != "decode" and prefill.backend != "disabled":
        reserved += 1.5 * 1024 if uses_mla(r) else len(prefill.bs or ()) * 8
        if prefill.backend == "breakable" and args.moe_a2a_backend == "deepep" and r.since(0, 5, 17):
            reserved += 1024
    return reserved


def _deepep(r: Resolution) -> int:
    """MiB for DeepEP's buffers in the decode graph."""
    return (
        2048
        if r.args.disaggregation_mode != "prefill"
        and r.graph["decode"].backend != "disabled"
        and r.args.moe_a2a_backend == "deepep"
        else 0
    )


def _for_vision(r: Resolution, fraction: float, *, post_capture: bool) -> float:
    if post_capture and r.since(0, 5, 20):
        return fraction - _VLM_MIB / gpu_memory_mib(r)
    vision = r.model.hf.get("vision_config")
    if vision is None:
        return fraction
    # Relative to ViT-L/14: 24 layers of width 1,024.
    layers, width = vision.get("num_hidden_layers", 24), vision.get("hidden_size", 1024)
    ratio = layers * width**2 / (24 * 1024**2)
    factor = max(0.8, min(1.05, 1.0 - 0.1 * (ratio - 1.0)))
    # The engine multiplies the two factors first: the last digits depend on it.
    return float(fraction * (0.95 * factor))
