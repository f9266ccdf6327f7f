"""The graph configuration out of its layers: engine defaults, platform defaults, off-switches, flags, JSON."""

from __future__ import annotations

from typing import Any

from engine.launch import PHASES, Phase
from engine.sglang.resolution import Resolution
from engine.verdict import Layer

# Per-phase flags, lowest precedence first: (argument, phase, key).
_FLAGS: tuple[tuple[str, Phase, str], ...] = (
    ("cuda_graph_backend_decode", "decode", "backend"),
    ("cuda_graph_backend_prefill", "prefill", "backend"),
    ("cuda_graph_max_bs_decode", "decode", "max_bs"),
    ("cuda_graph_max_bs_prefill", "prefill", "max_bs"),
    ("cuda_graph_max_seq_len_prefill", "prefill", "max_seq_len"),
    ("cuda_graph_bs_decode", "decode", "bs"),
    ("cuda_graph_bs_prefill", "prefill", "bs"),
    ("cuda_graph_tc_compiler", "decode", "tc_compiler"),
    ("cuda_graph_tc_compiler", "prefill", "tc_compiler"),
    ("cuda_graph_prefill_max_context", "prefill", "max_context_size"),
)
_SWITCHES: tuple[tuple[str, tuple[Phase, ...]], ...] = (
    ("disable_cuda_graph", ("decode", "prefill")),
    ("disable_prefill_cuda_graph", ("prefill",)),
    ("disable_decode_cuda_graph", ("decode",)),
)


def run(r: Resolution) -> None:
    """Fill ``r.graph`` and ``r.locked``."""
    args = r.args.__dict__
    for phase in PHASES:
        state = r.graph[phase]
        for key, value in r.release.graph.defaults[phase].items():
            setattr(state, key, value)
    for phase, settings in r.platform_defaults.items():
        for key, value in settings.items():
            r.set_graph(
                phase, key, list(value) if key == "bs" else value, "the platform's default", layer="platform-default"
            )
    for switch, phases in _SWITCHES:
        if args.get(switch):
            for phase in phases:
                _lock(r, phase, "backend", "disabled", switch)
    for name, phase, key in _FLAGS:
        value = args.get(name)  # a release has not all of them
        if value is not None:
            _lock(r, phase, key, value, name)
    for phase, settings in (args["cuda_graph_config"] or {}).items():
        for key, value in settings.items():
            _lock(r, phase, key, value, "cuda_graph_config")


def _lock(r: Resolution, phase: Phase, key: str, value: Any, name: str) -> None:
    layer: Layer = "operator" if name in r.given else "engine-default"
    option = "--" + name.replace("_", "-")
    why = f"{option} says so" if layer == "operator" else f"this model's default for {option}"
    r.set_graph(phase, key, list(value) if isinstance(value, list) else value, why, layer=layer)
    r.locked.add((phase, key))
