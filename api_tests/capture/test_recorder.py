"""The operator recorder shows on a CPU what CUDA graphs do: same storages, no host, constants stay."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

from torch import Tensor

from engine.capture.recorders.aten import AtenRecorder
from engine.capture.recorders.base import CaptureRefused, break_here
from engine.capture.recorders.cuda import CudaGraphRecorder

RECORDER = AtenRecorder(torch.device("cpu"))


def test_replay_reads_the_static_input_as_it_is_now() -> None:
    x = torch.arange(4.0)
    graph = RECORDER.capture(lambda: (x * 2).view(2, 2).sum(0) + 1, breaks=False)
    x.copy_(torch.tensor([1.0, 10.0, 100.0, 1000.0]))
    assert graph.replay().tolist() == [203.0, 2021.0]
    x.zero_()
    assert graph.replay().tolist() == [1.0, 1.0]


def test_in_place_operators_write_the_same_storage_once_a_replay() -> None:
    total = torch.zeros(3)
    step = torch.ones(3)
    graph = RECORDER.capture(lambda: total.add_(step).clone(), breaks=False)
    total.zero_()
    graph.replay()
    assert graph.replay().tolist() == [2.0, 2.0, 2.0]
    assert total.tolist() == [2.0, 2.0, 2.0]


def test_an_input_that_was_replaced_is_not_seen() -> None:
    box = [torch.ones(2)]
    graph = RECORDER.capture(lambda: box[0] * 3, breaks=False)
    box[0] = torch.full((2,), 7.0)
    assert graph.replay().tolist() == [3.0, 3.0]


def test_a_number_that_python_knew_at_capture_stays() -> None:
    scale = [2.0]
    x = torch.ones(2)
    graph = RECORDER.capture(lambda: x * scale[0], breaks=False)
    scale[0] = 5.0
    assert graph.replay().tolist() == [2.0, 2.0]


def test_a_break_runs_eagerly_at_every_replay() -> None:
    x, scale = torch.ones(2), [2.0]
    graph = RECORDER.capture(lambda: break_here(lambda: x * scale[0]) + 1, breaks=True)
    assert graph.segments == 2
    scale[0] = 5.0
    assert graph.replay().tolist() == [6.0, 6.0]
    # Without breaks the same place is part of the graph.
    whole = RECORDER.capture(lambda: break_here(lambda: x * scale[0]) + 1, breaks=False)
    scale[0] = 9.0
    assert whole.replay().tolist() == [6.0, 6.0]


X = torch.arange(4.0)


@pytest.mark.parametrize(
    "run",
    [
        lambda: X * X.sum().item(),
        lambda: X if bool(X.sum() > 0) else -X,
        lambda: X[: int(X.max())],
        lambda: X * len(X.tolist()),
        lambda: X * X.cpu().sum(),
        lambda: X[X > 1],
        lambda: X.nonzero(),
        lambda: torch.masked_select(X, X > 1),
        lambda: X.unique(),
        lambda: X + torch.tensor([1.0, 2.0, 3.0, 4.0]),
        lambda: X.repeat_interleave(torch.ones(4, dtype=torch.int64)),
    ],
    ids=["item", "branch", "slice", "tolist", "cpu", "mask", "nonzero", "select", "unique", "host tensor", "repeats"],
)
def test_what_a_cuda_graph_cannot_record_is_refused(run: Callable[[], Tensor]) -> None:
    with pytest.raises(CaptureRefused, match="during capture"):
        RECORDER.capture(run, breaks=False)


def test_filling_by_a_mask_is_recorded() -> None:
    x = torch.zeros(3)
    mask = torch.tensor([True, False, True])

    def run() -> Tensor:
        out: Tensor = x.clone()
        out[mask] = 5.0
        return out

    graph = RECORDER.capture(run, breaks=False)
    mask.copy_(torch.tensor([False, True, False]))
    assert graph.replay().tolist() == [0.0, 5.0, 0.0]


def test_bytes_are_those_of_the_tensors_that_the_graph_made() -> None:
    x = torch.zeros(1000)
    graph = RECORDER.capture(lambda: x + 1, breaks=False)
    assert graph.bytes == 4000
    assert graph.operators == 1


def test_what_the_cuda_recorder_calls_is_in_this_torch() -> None:
    """It runs only where there is a GPU; its calls are torch's public ones of 2.11 and newer."""
    assert "pool" in signature(torch.cuda.CUDAGraph.capture_begin).parameters
    assert list(signature(torch.cuda.CUDAGraph.capture_end).parameters) == ["self"]
    names = "graph_pool_handle is_current_stream_capturing memory_snapshot empty_cache current_stream synchronize"
    assert all(callable(getattr(torch.cuda, name)) for name in names.split())
    assert CudaGraphRecorder.claim == "measured"
