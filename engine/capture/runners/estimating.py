"""From the scaled model's layers to the whole model's: times by kind of layer, bytes by the mixers' own shapes."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from engine.capture.attention.batch import ForwardBatch
from engine.capture.attention.pools import Shapes
from engine.capture.estimate import Estimate, GraphEstimate
from engine.capture.models.decoder import Decoder
from engine.capture.models.mixer import PagedMixer, RecurrentMixer
from engine.capture.report import GraphReport
from engine.capture.runners.base import CudaGraphRunner
from engine.capture.runners.live import LiveBatches
from engine.capture.shape import ModelShape
from engine.launch import Phase

PASSES = 2
"""Of each graph's size; the faster of them counts."""


def estimate(
    whole: ModelShape,
    runners: Mapping[Phase, CudaGraphRunner],
    graphs: Mapping[Phase, Sequence[GraphReport]],
    *,
    seed: int,
) -> Estimate:
    """What the graphs of the scaled model say of the whole one."""
    scaled = next(iter(runners.values())).runner.shape
    captured, of_whole = scaled.sorts(), whole.sorts()
    kept = kept_of_each_sort(whole)
    many = Counter(of_whole)
    requests = max(runners["decode"].sizes) if "decode" in runners else 1
    per_request = sum(kept[sort].state * count for sort, count in many.items())
    return Estimate(
        captured=Counter(captured),
        whole=many,
        cache_bytes_per_token=sum(kept[sort].cache * count for sort, count in many.items()),
        state_bytes_per_request=per_request,
        state_bytes=per_request * requests,
        phases={
            phase: tuple(_deeper(runners[phase], graph, captured, of_whole, seed) for graph in graphs[phase])
            for phase in runners
        },
    )


def _deeper(
    runner: CudaGraphRunner, graph: GraphReport, captured: Sequence[str], whole: Sequence[str], seed: int
) -> GraphEstimate:
    layers, total = _layer_times(runner, graph.size, seed)
    each = {sort: sum(t for s, t in zip(captured, layers, strict=True) if s == sort) for sort in set(captured)}
    counts = Counter(captured)
    rest = max(0.0, total - sum(layers))
    deep = rest + sum(each[sort] / counts[sort] * count for sort, count in Counter(whole).items() if sort in each)
    factor = deep / total
    return GraphEstimate(
        size=graph.size,
        capture_s=graph.capture_s * factor,
        replay_s=graph.replay_s * factor,
        eager_s=graph.eager_s * factor,
        bytes=round(graph.bytes * len(whole) / len(captured)),
    )


def _layer_times(runner: CudaGraphRunner, size: int, seed: int) -> tuple[list[float], float]:
    """Seconds of each layer, and of the whole pass, run eagerly over a batch of that size."""
    batch = _batch(runner, size, seed)
    model, best, whole = runner.runner.model, [math.inf] * len(runner.runner.model.layers), math.inf
    for _ in range(PASSES):
        with _timed(runner, model.layers) as times:
            begun = time.perf_counter()
            runner.runner.forward_eager(batch)
            runner.recorder.synchronize()
            whole = min(whole, time.perf_counter() - begun)
        best = [min(pair) for pair in zip(best, times, strict=True)]
    return best, whole


def _batch(runner: CudaGraphRunner, size: int, seed: int) -> ForwardBatch:
    live = LiveBatches(runner.runner, seed)
    passes = live.decode([1] * size) if runner.phase == "decode" else live.extend([size], [0])
    return passes.eager[0]


@contextmanager
def _timed(runner: CudaGraphRunner, layers: nn.ModuleList) -> Iterator[list[float]]:
    """While this lasts, each layer writes down how long it took."""
    times = [0.0] * len(layers)

    def begin(index: int) -> Any:
        def hook(*_: object) -> None:
            runner.recorder.synchronize()
            times[index] = -time.perf_counter()

        return hook

    def end(index: int) -> Any:
        def hook(*_: object) -> None:
            runner.recorder.synchronize()
            times[index] += time.perf_counter()

        return hook

    hooks = [layer.register_forward_pre_hook(begin(i)) for i, layer in enumerate(layers)]
    hooks += [layer.register_forward_hook(end(i)) for i, layer in enumerate(layers)]
    try:
        yield times
    finally:
        for hook in hooks:
            hook.remove()


class Kept:
    """Of one layer: parameters, bytes a token, bytes a request."""

    def __init__(self, layer: nn.Module) -> None:
        mixers = list(layer.modules())
        self.parameters = sum(parameter.numel() for parameter in layer.parameters())
        self.cache = sum(_bytes(m.token_shapes(torch.bfloat16)) for m in mixers if isinstance(m, PagedMixer))
        self.state = sum(_bytes(m.state_shapes(torch.bfloat16)) for m in mixers if isinstance(m, RecurrentMixer))


def kept_of_each_sort(whole: ModelShape) -> Mapping[str, Kept]:
    """One layer of each sort in the whole model's dimensions, without memory for its weights."""
    sorts = whole.sorts()
    places = [sorts.index(sort) for sort in dict.fromkeys(sorts)]
    few = replace(
        whole,
        layer_kinds=tuple(whole.layer_kinds[i] for i in places),
        feed_forward=tuple(whole.feed_forward_of(i) for i in places),
        vocab_size=1,
    )
    with torch.device("meta"):
        model = Decoder(few)
    return {sorts[i]: Kept(layer) for i, layer in zip(places, model.layers, strict=True)}


def _bytes(shapes: Shapes) -> int:
    return sum(math.prod(shape) * dtype.itemsize for shape, dtype in shapes.values())
