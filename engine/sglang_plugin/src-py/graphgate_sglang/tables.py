"""The guard of the state tables: a look-up that finds no table is a RuntimeError that says so, not an IndexError.

The tables are lists with one static buffer for each batch size from 1 on. The methods run before every replay, so
nothing is done unless a look-up has failed. The modules are guarded when the engine imports them, not before: they
bring kernel libraries into processes that need none.
"""

from __future__ import annotations

import functools
import importlib.abc
import sys
from types import ModuleType
from typing import Any

from graphgate_sglang.rule import logger

MODULES = (
    "sglang.srt.layers.attention.hybrid_linear_attn_backend",
    "sglang.srt.hardware_backend.npu.attention.ascend_hybrid_linear_attn_backend",
)
METHODS = ("_replay_metadata", "_capture_metadata")


def guard() -> None:
    """Guard the modules that hold such tables, now or when they are imported."""
    sys.meta_path.insert(0, _WhenImported())
    for module in filter(None, map(sys.modules.get, MODULES)):
        guard_module(module)


def guard_module(module: ModuleType) -> None:
    """Wrap the methods of every class of the module."""
    classes = [owner for owner in vars(module).values() if isinstance(owner, type)]
    owners = [owner for owner in classes if owner.__module__ == module.__name__]
    for owner, name in [(owner, name) for owner in owners for name in METHODS if name in vars(owner)]:
        setattr(owner, name, guarded(vars(owner)[name]))
    if not any(hasattr(owner, METHODS[0]) for owner in owners):
        logger.warning("graphgate: %s has no %s; its tables are not guarded.", module.__name__, METHODS[0])


def guarded(method: Any) -> Any:
    """The method, with the failed look-up explained."""

    @functools.wraps(method)
    def explained(self: Any, bs: int, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, bs, *args, **kwargs)
        except IndexError as error:
            message = explanation(self, bs, *args, *kwargs.values())
            if message is None:
                raise
            raise RuntimeError(message) from error

    return explained


def explanation(backend: Any, bs: int, *rest: Any) -> str | None:
    """Which table has no entry for this batch size, and what to do; None where none is too short."""
    held = {k: len(v) for k, v in vars(backend).items() if k.endswith("_list") and isinstance(v, list)}
    table = next((name for name in held if held[name] < bs), None)
    if table is None:
        return None
    mode = next((str(mode.name).lower() for mode in rest if hasattr(mode, "is_decode_or_idle")), "capture")
    remedy = "is not initialised: nobody has called init_cuda_graph_state()."
    if held[table]:
        remedy = (
            "is too small. Lower the number of request rows a graph captures (full_prefill_max_req, or the largest "
            f"decode size) to {held[table]}, or raise max_bs of init_cuda_graph_state()."
        )
    elif mode == "extend":
        remedy = (
            "is not initialised. Only the decode runner calls init_cuda_graph_state(), and the prefill runner captures "
            "before the decode runner exists. Write '--cuda-graph-backend-prefill breakable' or 'disabled' "
            "(prefill.backend in --cuda-graph-config) instead of full."
        )
    return (
        f"CUDA graph metadata of the {type(backend).__name__} linear-attention backend: {table} was asked for batch "
        f"size {bs} in {'prefill' if mode == 'extend' else mode} and holds {held[table]} sizes: it {remedy}"
    )


class _WhenImported(importlib.abc.MetaPathFinder):
    """Finds nothing itself; what others find is guarded once it has been executed."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        others = [finder for finder in sys.meta_path if finder is not self and fullname in MODULES]
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        loader: Any = getattr(spec, "loader", None)
        if loader is not None:
            loader.exec_module = functools.partial(_then_guard, loader.exec_module)
        return spec


def _then_guard(execute: Any, module: ModuleType) -> None:
    execute(module)
    guard_module(module)
