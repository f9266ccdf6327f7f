"""The runners, one behaviour at a time: sizes, padding, request slots, chunks, pages, boundaries, allocation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

from torch import Tensor

from api_tests.capture.inside import captured
from api_tests.capture.jobs import LLAMA, QWEN3_NEXT, job
from engine.capture.attention.batch import ForwardBatch, ForwardMode
from engine.capture.job import CaptureJob
from engine.capture.runners.base import CudaGraphRunner
from engine.capture.runners.decode import DecodeCudaGraphRunner
from engine.capture.runners.live import LiveBatches
from engine.capture.runners.prefill import PrefillCudaGraphRunner
from engine.capture.runners.requests import TRACK_INTERVAL, Part, chunked, composed
from engine.capture.setup import CaptureSetup, Parts
from engine.launch import Phase

RECURRENT = job(
    ("gdn", "mamba2", "attention"), prefill_sizes=(4, 8), decode_sizes=(2, 4), allocation="per-phase", max_requests=3
)


class Captures:
    """Both runners of a job, captured; nothing verified."""

    def __init__(self, planned: CaptureJob) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.setup = CaptureSetup(
            replace(planned, replays=1),
            torch.device("cpu"),
            emit=lambda name, **data: self.events.append((name, data)),
            keep=lambda *_: None,
        )
        self.setup.run()
        self.model = self.setup.model_runner
        self.live = LiveBatches(self.model, seed=7)

    def runner(self, phase: Phase) -> CudaGraphRunner:
        return self.setup.runners[phase]

    def placed(self, count: int) -> list[int]:
        """The pool rows of ``count`` requests, given slots and pages."""
        return [part.row for part in self.live._parts([1] * count, [0] * count)]

    def composed(self, mode: ForwardMode, parts: Sequence[Part]) -> ForwardBatch:
        return composed(self.model.pools.requests, mode, parts)


@pytest.fixture(scope="module")
def captures() -> Captures:
    return Captures(RECURRENT)


def test_largest_first_into_one_pool_and_one_output_buffer(captures: Captures) -> None:
    sizes = [data["size"] for name, data in captures.events if name.endswith(".capture.size")]
    assert sizes == [8, 4, 4, 2]
    counted = [(data["n"], data["of"]) for name, data in captures.events if name == "prefill.capture.size"]
    assert counted == [(1, 2), (2, 2)]
    assert captures.runner("prefill").recorder is captures.runner("decode").recorder
    for phase, rows in (("prefill", 8), ("decode", 4)):
        runner = captures.setup.runners[phase]  # type: ignore[index]  # literals above
        assert runner.output is not None
        assert len(runner.output) == rows
        addresses = {graph.graph.replay().data_ptr() for graph in runner.captured.values()}
        assert addresses == {runner.output.data_ptr()}


@pytest.mark.parametrize(("rows", "size"), [(1, 4), (4, 4), (5, 8), (8, 8), (9, None)])
def test_padding_goes_to_the_next_size(captures: Captures, rows: int, size: int | None) -> None:
    assert captures.runner("prefill").padded_size(rows) == size


def test_more_than_a_graph_holds_is_not_replayed(captures: Captures) -> None:
    prefill, decode = captures.runner("prefill"), captures.runner("decode")
    too_long = captures.live.extend([9], [0]).eager[0]
    too_many = captures.live.extend([1, 1, 1, 1], [0, 0, 0, 0]).eager[0]
    for runner, batch in ((prefill, too_long), (prefill, too_many), (decode, captures.live.extend([2], [0]).eager[0])):
        assert not runner.can_run_graph(batch)
        with pytest.raises(ValueError, match=f"No {runner.phase} graph"):
            runner.replay(batch)


def test_request_slots_without_a_request_are_rows_of_length_zero(captures: Captures) -> None:
    prefill = captures.runner("prefill")
    padded = prefill.load_batch(captures.live.extend([3, 2], [0, 5]).eager[0], 8)
    assert (padded.batch_size, padded.num_tokens, padded.num_padding) == (3, 8, 1)
    assert padded.query_start_loc.tolist() == [0, 3, 5, 5]
    assert padded.req_pool_indices[2] == 0
    assert padded.out_cache_loc[5:].tolist() == [0, 0, 0]


def test_padded_decode_rows_write_reserved_slots_alone(captures: Captures) -> None:
    decode, pools = captures.runner("decode"), captures.model.pools
    captures.placed(2)
    before = pools.snapshot()
    decode.replay_padding(4)
    kept = [*[pools.kv.reserved] * len(list(pools.kv.named())), *[1] * len(list(pools.states.named()))]
    for (name, tensor), old, reserved in zip(pools.named(), before, kept, strict=True):
        assert torch.equal(tensor[reserved:], old[reserved:]), name


def test_a_long_prompt_in_chunks_is_the_prompt_at_once(captures: Captures) -> None:
    """Three requests, two of them cut: what a chunked prefill of the engine hands to its runner."""
    rows = captures.placed(3)
    generator = torch.Generator().manual_seed(3)
    parts = [
        Part(row, 0, torch.randint(0, captures.model.shape.vocab_size, (length,), generator=generator))
        for row, length in zip(rows, (13, 2, 6), strict=True)
    ]
    whole = captures.model.forward_eager(captures.composed("extend", parts))
    state = captures.model.pools.snapshot()
    captures.model.pools.scramble(torch.Generator().manual_seed(1))
    passes = [captures.composed("extend", chunk) for chunk in chunked(parts, 8)]
    assert [batch.num_tokens for batch in passes] == [8, 8, 5]
    assert [batch.prefix_lens.tolist() for batch in passes] == [[0], [8, 0, 0], [1]]
    replayed = torch.cat([captures.runner("prefill").replay(batch) for batch in passes])
    assert torch.allclose(replayed, whole, rtol=1e-4, atol=1e-5)
    requests = captures.model.pools.requests
    slots = requests.state_index[torch.tensor(rows)]
    for (name, tensor), expected in zip(captures.model.pools.named(), state, strict=True):
        if "recurrent" in name:
            assert torch.allclose(tensor[slots], expected[slots], rtol=1e-4, atol=1e-5), name


def recurrent_states(captures: Captures, slot: int) -> list[Tensor]:
    return [tensor[slot].clone() for _, tensor in captures.model.pools.states.named()]


@pytest.mark.parametrize(("length", "boundary"), [(7, 4), (8, 8), (3, None), (5, 4)])
def test_state_at_the_boundary_is_that_of_the_prompt_so_far(
    captures: Captures, length: int, boundary: int | None
) -> None:
    (row,) = captures.placed(1)
    requests = captures.model.pools.requests
    running, kept = int(requests.state_index[row]), int(requests.track_index[row])
    tokens = torch.arange(length) * 3 % captures.model.shape.vocab_size
    before = recurrent_states(captures, kept)
    assert boundary in (None, length // TRACK_INTERVAL * TRACK_INTERVAL)
    captures.runner("prefill").replay(captures.composed("extend", [Part(row, 0, tokens)]))
    at_boundary = recurrent_states(captures, kept)
    if boundary is None:
        assert all(torch.equal(one, other) for one, other in zip(before, at_boundary, strict=True))
        return
    captures.model.forward_eager(captures.composed("extend", [Part(row, 0, tokens[:boundary])]))
    expected = recurrent_states(captures, running)
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(at_boundary, expected, strict=True))
    assert not all(torch.allclose(a, b) for a, b in zip(at_boundary, before, strict=True))


def test_decode_keeps_the_state_at_every_boundary(captures: Captures) -> None:
    (row,) = captures.placed(1)
    requests = captures.model.pools.requests
    running, kept = int(requests.state_index[row]), int(requests.track_index[row])
    moved = []
    for position in range(2 * TRACK_INTERVAL):
        before = recurrent_states(captures, kept)
        captures.runner("decode").replay(captures.composed("decode", [Part(row, position, torch.tensor([position]))]))
        if not all(torch.equal(a, b) for a, b in zip(before, recurrent_states(captures, kept), strict=True)):
            moved.append(position)
            now = zip(recurrent_states(captures, kept), recurrent_states(captures, running), strict=True)
            assert all(torch.equal(a, b) for a, b in now)
    assert moved == [TRACK_INTERVAL - 1, 2 * TRACK_INTERVAL - 1]


@pytest.mark.parametrize("page_size", [1, 2, 8])
def test_where_the_pages_lie_does_not_matter(page_size: int) -> None:
    """The same request on two sets of pages: the same output, and every token where the page table says."""
    made = Captures(replace(job(LLAMA, prefill_sizes=(8,), decode_sizes=(1,)), page_size=page_size))
    outputs, places = [], []
    for _ in range(2):
        (row,) = made.placed(1)
        batch = made.composed("extend", [Part(row, 0, torch.arange(7))])
        outputs.append(made.runner("prefill").replay(batch))
        places.append(batch.out_cache_loc.tolist())
        pages = made.model.pools.requests.pages(torch.tensor([row]))[0].tolist()
        assert 0 not in pages
        assert places[-1] == [pages[at // page_size] * page_size + at % page_size for at in range(7)]
    assert places[0] != places[1]
    assert torch.allclose(outputs[0], outputs[1], rtol=1e-5, atol=1e-6)


def test_both_allocation_orders() -> None:
    """Under decode-owned allocation nobody has made the tables when full prefill captures; per-phase makes each."""
    owned = Captures(job(QWEN3_NEXT, prefill_sizes=(4,), decode_sizes=(1,)))
    assert list(owned.setup.runners) == ["decode"]
    names = [name for name, _ in owned.events]
    assert names.index("prefill.guard_refused") < names.index("decode.graph_state.allocated")
    assert "prefill.graph_state.allocated" not in names
    own = Captures(job(QWEN3_NEXT, prefill_sizes=(4,), decode_sizes=(1,), allocation="per-phase"))
    assert list(own.setup.runners) == ["prefill", "decode"]
    names = [name for name, _ in own.events]
    assert names.index("prefill.graph_state.allocated") < names.index("prefill.capture.begin")
    assert names.index("prefill.runner.constructed") < names.index("decode.graph_state.allocated")


def test_graphs_take_turns() -> None:
    """Both phases and all sizes replay in one order, so that each replays after others did."""
    seen: list[tuple[str, int]] = []

    class Prefill(PrefillCudaGraphRunner):
        def _run(self, size: int, batch: ForwardBatch) -> None:
            seen.append(("prefill", size))
            super()._run(size, batch)

    class Decode(DecodeCudaGraphRunner):
        def _run(self, size: int, batch: ForwardBatch) -> None:
            seen.append(("decode", size))
            super()._run(size, batch)

    reports = captured(RECURRENT, Parts(prefill_runner=Prefill, decode_runner=Decode))
    assert {report.outcome for report in reports.values()} == {"ok"}
    assert set(seen) == {("prefill", 4), ("prefill", 8), ("decode", 2), ("decode", 4)}
    followed = {(one, other) for one, other in itertools.pairwise(seen) if one != other}
    assert {(one[0], other[0]) for one, other in followed} == set(itertools.product(("prefill", "decode"), repeat=2))
    assert len(followed) >= 8
