"""What the GPU's memory sets where nothing is given: chunk size, and the capture sizes of both phases."""

from __future__ import annotations

from functools import cache

from engine.sglang.derived import gpu_memory_mib, uses_mla
from engine.sglang.ladders import cpu_sizes, decode_sizes, prefill_sizes
from engine.sglang.resolution import Refusal, Resolution, Version
from engine.sglang.steps.memory.qwen3_vl import expand_decode_to_running_limit
from engine.sglang.versioned import FIRST, at

# (below this many MiB, chunk tokens, largest decode batch under TP 4, from TP 4 on)
_Class = tuple[float, int, int, int]
_LARGER: tuple[_Class, ...] = (
    (60 * 1024, 4096, 32, 160),
    (90 * 1024, 8192, 256, 512),
    (160 * 1024, 8192, 256, 512),
    (float("inf"), 16384, 512, 512),
)
_CLASSES: tuple[tuple[Version, tuple[_Class, ...]], ...] = (
    ((0, 5, 20), ((20 * 1024, 2048, 8, 8), (35 * 1024, 4096, 48, 160), *_LARGER)),
    (FIRST, ((20 * 1024, 2048, 8, 8), (35 * 1024, 2048, 24, 80), *_LARGER)),
)
_MLA_CAPTURE_TOKENS = 8192
_MLA_CAPTURE_TOKENS_BEFORE = 2048
_PIPELINE_CAPTURE_TOKENS = 8192
_LLAMA_2_CAPTURE_TOKENS = 4096


def run(r: Resolution) -> None:
    """Chunk size and capture sizes. A value in the JSON that is no number fails here, as it does in the engine."""
    try:
        _by_memory_class(r)
        _decode(r)
        _prefill(r)
    except TypeError as error:
        raise Refusal("TypeError", str(error)) from None


@cache
def _class_of(memory: int, version: Version) -> tuple[int, int, int]:
    return next(row[1:] for row in at(_CLASSES, version) if memory < row[0])


def _by_memory_class(r: Resolution) -> None:
    memory = gpu_memory_mib(r)
    chunk, small, large = _class_of(memory, r.version)
    if r.args.chunked_prefill_size is None:
        r.set("chunked_prefill_size", chunk, f"for a GPU with {memory} MiB", layer="engine-default")
    state = r.graph["decode"]
    if state.max_bs is not None:
        return
    largest = small if r.args.tp_size < 4 else large
    why = f"for a GPU with {memory} MiB at tensor parallelism {r.args.tp_size}"
    limit = r.args.max_running_requests
    if limit is not None and largest > limit and r.since(0, 5, 22):
        largest, why = limit, "no more than --max-running-requests"
    r.set_graph("decode", "max_bs", largest, why, layer="engine-default")


def _decode(r: Resolution) -> None:
    if r.since(0, 5, 20):
        expand_decode_to_running_limit(r)
    if r.args.device == "cpu":
        _cpu(r)
        return
    state = r.graph["decode"]
    if state.bs is not None:
        try:
            largest = max(state.bs)
        except ValueError as error:
            raise Refusal("ValueError", str(error)) from None
        r.set_graph("decode", "max_bs", largest, "the largest of the sizes given")
        return
    ladder = r.release.ladders["decode" if r.args.speculative_algorithm is None else "speculative"]
    padding = not r.args.disable_cuda_graph_padding
    if state.max_bs is None:  # cannot happen: set above
        return
    sizes = decode_sizes(ladder, state.max_bs, padding=padding)
    r.set_graph("decode", "bs", sizes, "the engine's ladder up to max_bs", layer="engine-default")


def _cpu(r: Resolution) -> None:
    """The CPU graph is torch.compile's: its largest batch leads, the decode sizes follow."""
    state = r.graph["decode"]
    if state.bs is not None:
        r.set("torch_compile_max_bs", max(state.bs), "the largest of the sizes given")
    else:
        largest: int = r.args.torch_compile_max_bs or state.max_bs or 0
        r.set("torch_compile_max_bs", largest, "the largest batch of the CPU graph", layer="engine-default")
        sizes = cpu_sizes(largest, padding=not r.args.disable_cuda_graph_padding)
        r.set_graph("decode", "bs", sizes, "the engine's ladder for the CPU graph", layer="engine-default")
    if r.args.torch_compile_max_bs <= 0:
        raise Refusal("AssertionError", "cuda_graph_config[decode].bs should contain positive batch sizes")
    r.set_graph("decode", "max_bs", r.args.torch_compile_max_bs, "--torch-compile-max-bs leads on a CPU")


def _prefill(r: Resolution) -> None:
    state = r.graph["prefill"]
    if state.max_bs is None:
        r.set_graph("prefill", "max_bs", _prefill_max(r), "the chunk size, within limits", layer="engine-default")
    _within_context(r)
    if state.bs is None and state.max_bs is not None:
        sizes = prefill_sizes(r.release.ladders["prefill"], state.max_bs)
        r.set_graph("prefill", "bs", sizes, "the engine's ladder up to max_bs", layer="engine-default")


def _prefill_max(r: Resolution) -> int:
    """The largest prefill graph in tokens where nothing is given."""
    largest: int = r.args.chunked_prefill_size
    if uses_mla(r):
        # Before 0.5.23 a fixed size, whatever the chunk; then the chunk within a limit.
        largest = min(_MLA_CAPTURE_TOKENS, largest) if r.since(0, 5, 23) else _MLA_CAPTURE_TOKENS_BEFORE
    staged = r.args.pp_size > 1 and r.since(0, 5, 19)
    if staged and r.graph["prefill"].backend == "breakable" and ("prefill", "bs") not in r.locked:
        largest = min(largest, _PIPELINE_CAPTURE_TOKENS)
    if r.args.max_total_tokens is not None:
        largest = min(largest, r.args.max_total_tokens)
    if "llama-2" in r.args.model_path.lower():
        largest = min(largest, _LLAMA_2_CAPTURE_TOKENS)
    return largest


def _within_context(r: Resolution) -> None:
    """Before 0.5.17 no prefill graph exceeds ``--context-length``, not even one that was asked for."""
    length, largest = r.args.context_length, r.graph["prefill"].max_bs
    if length is not None and largest is not None and largest > length and not r.since(0, 5, 17):
        r.set_graph("prefill", "max_bs", length, "no more than --context-length")
