"""The plugin says what the service and the capture worker say: the same rule, the same reason, the same way out."""

from __future__ import annotations

import types
from typing import Any

import pytest
from graphgate_sglang import rule, tables

from engine.launch import ModelRef
from engine.launch_forms import launch_from_arguments
from engine.models.resolver import ModelResolver
from engine.models.settings import ModelSettings
from engine.preflight import check

NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"
resolver = ModelResolver(ModelSettings.from_environment({"GRAPHGATE_OFFLINE": "1"}))


def said_by_the_service(*words: str, **more: Any) -> str:
    launch = launch_from_arguments(ModelRef(id=NEXT), words, release="0.5.23", **more)
    (found,) = [finding for finding in check(launch, resolver).verdict.findings if finding.rule == "GG101"]
    return f"{found.message} {found.remedy}"


def said_by_the_plugin(monkeypatch: pytest.MonkeyPatch, *, locked: bool) -> str:
    prefill = types.SimpleNamespace(backend="full")
    monkeypatch.setattr("graphgate_sglang.engine.release", lambda: "0.5.23")
    monkeypatch.setattr("graphgate_sglang.engine.graph", lambda _: types.SimpleNamespace(prefill=prefill))
    monkeypatch.setattr("graphgate_sglang.engine.hybrid", lambda _: ("Qwen3NextForCausalLM", "sglang"))
    arguments = types.SimpleNamespace(
        model_path=NEXT,
        cuda_graph_backend_prefill="full",
        _cuda_graph_config_locked={("prefill", "backend")} if locked else set(),
    )
    found = rule.finding(arguments)
    assert found is not None
    return found[1]


def shared(one: str, other: str) -> set[str]:
    """The sentences that both say."""
    return set(one.split(". ")) & set(other.split(". "))


REASON = (
    "SGLang 0.5.23 captures prefill graphs before the decode graph runner exists, and only the decode runner allocates "
    "the state-index tables that the linear-attention backend looks up: capture ends in IndexError after the weights "
    "are loaded"
)


def test_the_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    service = said_by_the_service("--cuda-graph-backend-prefill", "full")
    plugin = said_by_the_plugin(monkeypatch, locked=True)
    assert REASON in shared(service, plugin)
    beginning = f"--cuda-graph-backend-prefill full asks for full prefill graphs by name: {NEXT} (Qwen3NextForCausalLM)"
    assert service.startswith(beginning)
    assert plugin.startswith(f"graphgate GG101: {beginning}")
    assert "decode graphs are not affected" in service
    assert "decode graphs are not affected" in plugin


def test_the_disabling(monkeypatch: pytest.MonkeyPatch) -> None:
    service = said_by_the_service(defaults={"prefill": {"backend": "full"}})
    plugin = said_by_the_plugin(monkeypatch, locked=False)
    beginning = f"Full prefill graphs came from the platform's defaults and are disabled: {NEXT} (Qwen3NextForCausalLM)"
    assert service.startswith(beginning)
    assert plugin.startswith(f"graphgate GG101: {beginning}")
    assert REASON in shared(service, plugin)


@pytest.mark.parametrize("held", [0, 2])
def test_the_tables(held: int) -> None:
    torch = pytest.importorskip("torch", reason="the worker extra is not installed")
    from engine.capture.attention.guard import GraphStateError, Guard

    guard = Guard(
        backend="GDNAttnBackend linear-attention", family="GDN", allocation="decode-owned", device=torch.device("cpu")
    )
    buffers = [torch.zeros(size + 1, dtype=torch.int32) for size in range(held)]
    with pytest.raises(GraphStateError) as refused:
        guard.of_size(buffers, table="state_indices_list", batch_size=4, mode="extend", dtype=torch.int32)
    backend = type("GDNAttnBackend", (), {})()
    backend.state_indices_list = buffers
    mode = types.SimpleNamespace(name="EXTEND", is_decode_or_idle=lambda: False)
    plugin = tables.explanation(backend, 4, None, mode)
    assert plugin is not None
    worker = str(refused.value).replace(", or allocate the tables for each phase before it captures", "")
    assert plugin == worker
