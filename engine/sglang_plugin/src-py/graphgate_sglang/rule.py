"""The rule: full prefill graphs on a hybrid linear-attention model are refused, or disabled where nobody named them."""

from __future__ import annotations

import logging
from typing import Any

from graphgate_sglang import engine

logger = logging.getLogger("graphgate_sglang")

WHY = (
    "{model} ({architecture}) is a hybrid linear-attention model. SGLang {release} captures prefill graphs before the "
    "decode graph runner exists, and only the decode runner allocates the state-index tables that the linear-attention "
    "backend looks up: capture ends in IndexError after the weights are loaded."
)


Finding = tuple[bool, str]
"""Whether the launch must not go on (otherwise its prefill graphs are to be disabled), and what is wrong with it."""


def finding(server_args: Any) -> Finding | None:
    """The finding on a launch that the engine has resolved, or None."""
    graph = engine.graph(server_args)
    model = engine.hybrid(server_args) if graph and graph.prefill.backend == "full" else None
    if model is None:
        return None
    architecture, package = model
    if package not in {"sglang", "transformers"}:
        said = "graphgate: %s comes from %s, outside SGLang; it is treated as a hybrid linear-attention model."
        logger.warning(said, architecture, package)
    why = WHY.format(model=server_args.model_path, architecture=architecture, release=engine.release())
    if ("prefill", "backend") not in server_args._cuda_graph_config_locked:
        said = f"Full prefill graphs came from the platform's defaults and are disabled: {why}"
        return False, f"graphgate GG101: {said} Decode graphs are not affected."
    named = getattr(server_args, "cuda_graph_backend_prefill", None) == "full"
    written = "--cuda-graph-backend-prefill full" if named else "prefill backend full"
    return True, (
        f"graphgate GG101: {written} asks for full prefill graphs by name: {why} Leave the prefill backend to the "
        "engine, or write --cuda-graph-backend-prefill disabled; decode graphs are not affected."
    )
