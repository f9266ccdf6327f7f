"""What the plugin asks of the engine. Nothing of the engine is imported before it is asked.

0.5.19 and newer declare resolved values and read them through a view (``arg_groups/overrides.py``); older releases keep
them on the arguments themselves (``server_args.py``).
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from typing import Any


def release() -> str:
    """The engine's version; empty where it says none."""
    return str(getattr(importlib.import_module("sglang"), "__version__", ""))


def graph(server_args: Any) -> Any:
    """The resolved CUDA-graph configuration; None where there is none, as for a launch without a model."""
    view = getattr(_overrides(), "resolving_view", lambda itself: itself)
    return getattr(view(server_args), "cuda_graph_config", None)


def disable_prefill(server_args: Any) -> None:
    """Switch prefill graphs off, the way the release's own rules do it."""
    config = graph(server_args)
    if hasattr(_overrides(), "declare_resolution"):
        prefill = dataclasses.replace(config.prefill, backend="disabled")
        changed = dataclasses.replace(config, prefill=prefill)
        _overrides().declare_resolution(server_args, "graphgate", cuda_graph_config=changed)
    else:
        config.prefill.backend = "disabled"


def hybrid(server_args: Any) -> tuple[str, str] | None:
    """Architecture, and the package of its configuration, of a model for the engine's hybrid linear-attention backend.

    Inkling is exempt: its own backend supports full prefill, and is its default. It is looked at first, because the
    engine's helper raises on it this early.
    """
    if str(server_args.model_path).startswith("instance://"):
        return None  # its configuration comes from another server, and resolution asks for none either
    model_config_of = getattr(_overrides(), "model_config_of", None)
    model = model_config_of(server_args) if model_config_of else server_args.get_model_config()
    names = [*map(str, getattr(model.hf_config, "architectures", None) or ()), type(model.hf_config).__name__]
    if any(name.startswith("Inkling") for name in names):
        return None
    if os.environ.get("SGLANG_EXTERNAL_MODEL_PACKAGE"):
        importlib.import_module("sglang.srt.models.registry")  # imports that package, which may register hybrids
    config = _mambaish(model)
    return (names[0], type(config).__module__.partition(".")[0]) if config else None


def _mambaish(model: Any) -> Any:
    """The engine's own answer: ``mambaish_config``, which 0.5.15 keeps as a property of its model runner."""
    try:
        from sglang.srt.configs.hybrid_arch import mambaish_config
    except ImportError:
        from sglang.srt.configs.linear_attn_model_registry import get_linear_attn_config
        from sglang.srt.model_executor.model_runner import ModelRunner

        runner = ModelRunner.__new__(ModelRunner)
        runner.model_config, runner.is_draft_worker = model, False
        runner._linear_attn_registry_cache = get_linear_attn_config(model.hf_config)
        return runner.mambaish_config
    return mambaish_config(model)


def _overrides() -> Any:
    return importlib.import_module("sglang.srt.arg_groups.overrides")
