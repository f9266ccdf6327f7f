"""Prefill graphs smaller than a chunk, or off the ladder.

## What it does
Looks for prefill capture sizes that the operator wrote and that end below `--chunked-prefill-size`, or for a `--cuda-
graph-max-bs-prefill` that no step of the release's ladder reaches, or sizes above what all requests together can hold.

## Why it is bad
A chunk above the largest bucket runs eagerly: under load that is most of the prefill. With sizes below the chunk the
engine also sizes the KV cache before capture instead of after it. A largest size between two steps of the ladder is
captured at the step below.

## What to do
Make the largest size, the chunk and a step of the ladder agree: `--cuda-graph-max-bs-prefill` equal to `--chunked-
prefill-size`.

## Exceptions
For the chunk and the ladder only sizes that the operator wrote are looked at. The full backend, which is meant for
short prompts, is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.derived import num_dp_ranks

_FLAGS = ("cuda_graph_bs_prefill", "cuda_graph_max_bs_prefill")
_KEYS = ("bs", "max_bs")


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where written sizes end below the chunk, or below their own limit."""
    prefill = examined.prefill
    if prefill.backend in ("disabled", "full") or not prefill.bs:
        return
    yield from _dropped(examined)
    if not _written(examined):
        return
    locked = examined.resolution.locked
    largest, chunk, asked = max(prefill.bs), examined.args.chunked_prefill_size, prefill.max_bs
    if asked is not None and largest < asked and ("prefill", "bs") not in locked:
        message = (
            f"--cuda-graph-max-bs-prefill {asked} is no step of SGLang {examined.release}'s ladder: the largest "
            f"prefill graph holds {largest} tokens, and batches above it run eagerly."
        )
        remedy = f"Write --cuda-graph-max-bs-prefill {largest}, or a larger step of the ladder (a multiple of 512)."
        yield Hit(finding=RULE.finding("warning", message, remedy))
    elif chunk is not None and largest < chunk:
        message = (
            f"The largest prefill graph holds {largest} tokens and a chunk {chunk}: full chunks run eagerly, and "
            f"SGLang {examined.release} sizes the KV cache before capture."
        )
        remedy = f"Write --cuda-graph-max-bs-prefill {chunk}, or --chunked-prefill-size {largest}."
        arguments = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "bs")
        suggestion = with_graph(arguments, examined.predicted.release, "prefill", "max_bs", chunk)
        yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


def _dropped(examined: Examined) -> Iterator[Hit]:
    """A hit where some of the sizes exceed what all requests together can hold."""
    args, sizes = examined.args, examined.prefill.bs or []
    if args.max_running_requests is None or not examined.since(0, 5, 17):
        return
    slots = max(1, args.max_running_requests // max(1, num_dp_ranks(args)))
    most = slots * examined.resolution.model.context_len
    dropped = [size for size in sizes if size > most]
    if dropped and len(dropped) < len(sizes):
        message = (
            f"{len(dropped)} of {len(sizes)} prefill sizes exceed the {most} tokens that {slots} requests can hold: "
            f"SGLang {examined.release} leaves them out."
        )
        yield Hit(finding=RULE.finding("warning", message, f"Give no prefill size above {most}."))


def _written(examined: Examined) -> bool:
    """Whether the operator set prefill sizes; the engine locks those of some architectures too."""
    given = examined.resolution.given
    if any(flag in given for flag in _FLAGS):
        return True
    config = examined.args.cuda_graph_config if "cuda_graph_config" in given else None
    settings = config.get("prefill") if isinstance(config, Mapping) else None
    return isinstance(settings, Mapping) and any(key in settings for key in _KEYS)


RULE = Rule(
    id="GG302",
    slug="prefill-coverage",
    title="prefill graphs that do not cover a chunk",
    since="0.1.0",
    releases=((0, 5, 15), (0, 5, 23)),
    covers=("PREFILL_COVERAGE",),
    phase="prefill",
    backend="breakable",
    severity="warning",
    confidence="certain",
    evidence=(
        report(33852, "a dependent feature switches itself off where prefill sizes end below the chunk"),
        report(30206, "which prefill sizes are captured", pull=True),
        source(
            "0.5.23",
            "arg_groups/cuda_graph_hook.py, generate_prefill_cuda_graph_batch_sizes",
            "the ladder ends at the last step that max_bs reaches",
        ),
    ),
    check=check,
)
