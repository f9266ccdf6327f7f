"""The guard of the static tables: refused by name, never an IndexError, never a silent wrong buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

from torch import Tensor

from engine.capture.attention.batch import ForwardBatch, ForwardMode
from engine.capture.attention.full import FullAttentionBackend
from engine.capture.attention.guard import GraphStateError, same_device
from engine.capture.attention.linear import LinearAttentionBackend
from engine.capture.attention.pools import Pools
from engine.capture.options import Allocation

CPU = torch.device("cpu")
ROWS = 4
CONTEXT = 8


def pools() -> Pools:
    return Pools(max_requests=8, max_context=CONTEXT, kv={}, states={}, device=CPU, page_size=2)


def linear(allocation: Allocation = "decode-owned") -> LinearAttentionBackend:
    return LinearAttentionBackend(pools(), "GDN", allocation, CPU)


def batch(size: int, mode: ForwardMode) -> ForwardBatch:
    zeros = torch.zeros(size, dtype=torch.int64)
    return ForwardBatch(
        mode=mode,
        input_ids=zeros,
        positions=zeros,
        out_cache_loc=zeros,
        req_pool_indices=zeros,
        prefix_lens=zeros,
        query_start_loc=torch.arange(size + 1),
        max_len=1,
    )


class Bench:
    """One backend with everything allocated, whose tables a test can damage, by name."""

    def __init__(self, mode: ForwardMode) -> None:
        self.mode: ForwardMode = mode
        self.pools = pools()
        self.linear = LinearAttentionBackend(self.pools, "GDN", "per-phase", CPU)
        self.full = FullAttentionBackend(self.pools, "per-phase")
        for backend in (self.linear, self.full):
            backend.init_cuda_graph_state(ROWS, ROWS, mode)

    def damage(self, table: str, change: Callable[[Tensor], Tensor | None]) -> None:
        """Put ``change(buffer)`` in the place of the table's buffer for :data:`ROWS` rows; None takes it away."""
        if table == "page_table":
            buffer = self.full.page_tables[self.mode]
            assert buffer is not None
            self.full.page_tables[self.mode] = change(buffer)
            return
        if table.endswith("_list"):
            listed = getattr(self.linear.tables[self.mode], table)
            changed = change(listed[-1])
            listed[-1:] = [] if changed is None else [changed]
            return
        owner: Any = self.linear.tables[self.mode] if table.endswith("_buf") else self.pools.requests
        name = "table" if table == "req_to_token" else table
        setattr(owner, name, change(getattr(owner, name)))

    def prepare(self, table: str, method: str, size: int = ROWS) -> None:
        backend = self.full if table in ("page_table", "req_to_token") else self.linear
        getattr(backend, method)(batch(size, self.mode))


LISTS = ("state_indices_list", "query_start_loc_list", "has_initial_list")
BUFFERS = ("mamba_track_indices_buf", "mamba_track_mask_buf", "mamba_track_ends_buf", "page_table")
LOOKED_UP = ("state_index", "track_index", "req_to_token")
TABLES = (*LISTS, *BUFFERS, *LOOKED_UP)


def refused(table: str, change: Callable[[Tensor], Tensor | None], mode: ForwardMode, method: str) -> GraphStateError:
    bench = Bench(mode)
    bench.prepare(table, method)  # sound, before the damage
    bench.damage(table, change)
    with pytest.raises(RuntimeError, match=table) as info:
        bench.prepare(table, method)
    assert isinstance(info.value, GraphStateError)
    said = str(info.value)
    phase = "decode" if mode == "decode" else "prefill"
    family = "GDN" if table not in ("page_table", "req_to_token") else "full attention"
    assert (info.value.table, info.value.batch_size, info.value.family) == (table, ROWS, family)
    for words in (f"batch size {ROWS}", phase, family.replace(" ", "-"), f"holds {info.value.capacity} "):
        assert words in said
    return info.value


@pytest.mark.parametrize("mode", ["extend", "decode"])
@pytest.mark.parametrize("method", ["prepare_capture", "prepare_replay"])
@pytest.mark.parametrize("table", TABLES)
class TestEveryTable:
    def test_another_device(self, table: str, method: str, mode: ForwardMode) -> None:
        found = refused(table, lambda buffer: buffer.to("meta"), mode, method)
        assert found.fault == "wrong device"
        assert "lies on meta, and the backend runs on cpu" in str(found)
        assert "Allocate it on cpu" in str(found)
        assert "on meta" in found.found

    def test_another_dtype(self, table: str, method: str, mode: ForwardMode) -> None:
        found = refused(table, lambda buffer: buffer.to(torch.float16), mode, method)
        assert found.fault == "wrong dtype"
        assert "holds float16, and the captured kernels read " in str(found)
        assert found.found == "float16 on cpu"

    def test_too_small(self, table: str, method: str, mode: ForwardMode) -> None:
        # A list loses its last buffer, any other table its last row.
        found = refused(table, lambda buffer: None if table in LISTS else buffer[:-1].clone(), mode, method)
        assert found.fault == "too small"
        assert found.capacity == (8 if table in LOOKED_UP else ROWS - 1)
        assert f"to {found.capacity}, or raise max_bs of init_cuda_graph_state()" in str(found)

    def test_another_shape(self, table: str, method: str, mode: ForwardMode) -> None:
        found = refused(table, lambda buffer: buffer[..., None], mode, method)
        assert found.fault == "wrong shape"
        assert "the graph was captured over [" in str(found)


@pytest.mark.parametrize("mode", ["extend", "decode"])
@pytest.mark.parametrize("method", ["prepare_capture", "prepare_replay"])
@pytest.mark.parametrize("table", [*BUFFERS, *LOOKED_UP])
def test_a_table_that_is_not_there(table: str, method: str, mode: ForwardMode) -> None:
    if (table, mode, method) == ("page_table", "extend", "prepare_capture"):
        # The first prefill capture makes it, in the engine too: that is why full attention captures full prefill.
        bench = Bench(mode)
        bench.damage(table, lambda _: None)
        bench.prepare(table, method)
        assert bench.full.page_tables[mode] is not None
        return
    found = refused(table, lambda _: None, mode, method)
    assert (found.fault, found.capacity, found.found) == ("uninitialised", 0, "no table")
    assert "Call init_cuda_graph_state()" in str(found)


@pytest.mark.parametrize(("table", "columns"), [("page_table", CONTEXT // 2), ("req_to_token", CONTEXT)])
def test_too_narrow_for_the_context(table: str, columns: int) -> None:
    found = refused(table, lambda buffer: buffer[:, :-1].clone(), "decode", "prepare_replay")
    assert (found.fault, found.capacity) == ("too small", columns - 1)
    assert f"Allocate {columns} columns" in str(found)


@pytest.mark.parametrize("mode", ["extend", "decode"])
@pytest.mark.parametrize("method", ["prepare_capture", "prepare_replay"])
def test_uninitialised(mode: ForwardMode, method: str) -> None:
    with pytest.raises(
        RuntimeError, match=r"state_indices_list .*batch size 3 .*holds 0 sizes.*not initialised"
    ) as info:
        getattr(linear(), method)(batch(3, mode))
    assert isinstance(info.value, GraphStateError)
    assert (info.value.table, info.value.batch_size, info.value.capacity) == ("state_indices_list", 3, 0)
    assert (info.value.family, info.value.fault) == ("GDN", "uninitialised")
    assert "init_cuda_graph_state()" in str(info.value)
    assert ("--cuda-graph-backend-prefill breakable" in str(info.value)) == (mode == "extend")


def test_more_rows_than_were_allocated() -> None:
    backend = linear()
    backend.init_cuda_graph_state(2, 2, "decode")
    backend.prepare_replay(batch(2, "decode"))
    with pytest.raises(GraphStateError, match=r"batch size 5 in prefill and holds 2 sizes.*too small.*to 2,") as info:
        backend.prepare_replay(batch(5, "extend"))
    assert info.value.capacity == 2


def test_no_rows_is_refused_and_does_not_reach_for_the_last_table() -> None:
    bench = Bench("decode")
    for table in ("state_indices_list", "page_table"):
        with pytest.raises(GraphStateError, match="batch size 0"):
            bench.prepare(table, "prepare_replay", size=0)


def test_nothing_is_written_when_one_table_is_refused() -> None:
    bench = Bench("decode")
    bench.pools.requests.state_index.fill_(7)
    bench.damage("mamba_track_indices_buf", lambda buffer: buffer.int())
    before = bench.linear.state_indices_list[-1].clone()
    with pytest.raises(GraphStateError):
        bench.linear.prepare_replay(batch(ROWS, "decode"))
    assert torch.equal(bench.linear.state_indices_list[-1], before)


def test_each_phase_has_its_own_tables_only_when_asked() -> None:
    own = linear("per-phase")
    own.init_cuda_graph_state(4, 64, "extend")
    assert own.state_indices_list == []
    with pytest.raises(GraphStateError, match="decode"):
        own.prepare_replay(batch(1, "decode"))
    own.prepare_replay(batch(4, "extend"))
    shared = linear()
    shared.init_cuda_graph_state(4, 4, "decode")
    shared.prepare_replay(batch(4, "extend"))


def test_allocating_again_does_not_shift_the_sizes() -> None:
    backend = linear()
    backend.init_cuda_graph_state(2, 2, "decode")
    backend.init_cuda_graph_state(4, 4, "decode")
    assert [len(table) for table in backend.state_indices_list] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("cuda", "cuda:1", True), ("cuda:0", "cuda:1", False), ("cpu", "cuda", False), ("cpu", "cpu", True)],
)
def test_a_device_without_an_index_is_any_of_its_kind(one: str, other: str, same: bool) -> None:
    assert same_device(torch.device(one), torch.device(other)) == same
