"""A model class in which the engine finds no language model."""

from __future__ import annotations

from engine.sglang.loading.views import view_of
from engine.sglang.resolution import Resolution


def run(r: Resolution) -> str | None:
    """The class holds neither ``model`` nor ``language_model``."""
    if view_of(r).without == "language model":
        return f"SGLang finds no language model inside its class for {r.model.arch}"
    return None
