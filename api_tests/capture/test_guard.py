"""The guard of the static tables: refused by name, never an IndexError, never a silent wrong buffer."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

from engine.capture.attention.batch import ForwardBatch, ForwardMode  # noqa: E402 - torch may be absent
from engine.capture.attention.guard import GraphStateError, guarded_lookup  # noqa: E402
from engine.capture.attention.linear import LinearAttentionBackend  # noqa: E402
from engine.capture.attention.pools import Pools  # noqa: E402
from engine.capture.options import Allocation  # noqa: E402

CPU = torch.device("cpu")


def backend(allocation: Allocation = "decode-owned") -> LinearAttentionBackend:
    pools = Pools(max_requests=8, max_context=4, kv={}, states={}, device=CPU)
    return LinearAttentionBackend(pools, "GDN", allocation, CPU)


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


@pytest.mark.parametrize("mode", ["extend", "decode"])
@pytest.mark.parametrize("method", ["prepare_capture", "prepare_replay"])
def test_uninitialised(mode: ForwardMode, method: str) -> None:
    with pytest.raises(
        RuntimeError, match=r"state_indices_list .*batch size 3 .*holds 0 sizes.*not initialised"
    ) as info:
        getattr(backend(), method)(batch(3, mode))
    assert isinstance(info.value, GraphStateError)
    assert (info.value.table, info.value.batch_size, info.value.capacity) == ("state_indices_list", 3, 0)
    assert info.value.family == "GDN"
    assert "init_cuda_graph_state()" in str(info.value)


def test_too_small() -> None:
    linear = backend()
    linear.init_cuda_graph_state(2, 2, "decode")
    linear.prepare_replay(batch(2, "decode"))
    with pytest.raises(GraphStateError, match=r"batch size 5 in prefill and holds 2 sizes.*too small.*to 2,") as info:
        linear.prepare_replay(batch(5, "extend"))
    assert info.value.capacity == 2


def test_no_rows_is_refused_and_does_not_reach_for_the_last_table() -> None:
    tables = [torch.zeros(1), torch.zeros(2)]
    with pytest.raises(GraphStateError):
        guarded_lookup(
            tables, table="state_indices_list", batch_size=0, family="GDN", phase="decode", allocation="decode-owned"
        )


def test_each_phase_has_its_own_tables_only_when_asked() -> None:
    own = backend("per-phase")
    own.init_cuda_graph_state(4, 64, "extend")
    assert own.state_indices_list == []
    with pytest.raises(GraphStateError, match="decode"):
        own.prepare_replay(batch(1, "decode"))
    own.prepare_replay(batch(4, "extend"))
    shared = backend()
    shared.init_cuda_graph_state(4, 4, "decode")
    shared.prepare_replay(batch(4, "extend"))


def test_allocating_again_does_not_shift_the_sizes() -> None:
    linear = backend()
    linear.init_cuda_graph_state(2, 2, "decode")
    linear.init_cuda_graph_state(4, 4, "decode")
    assert [len(table) for table in linear.state_indices_list] == [1, 2, 3, 4]
