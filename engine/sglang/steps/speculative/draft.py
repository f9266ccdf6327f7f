"""The draft model's config.json, as far as it is known: it is when the draft is the target's own checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.sglang.hf_config import HfConfig
from engine.sglang.resolution import Resolution


def draft_config(r: Resolution) -> HfConfig | None:
    """The draft's configuration; None where the launch names another checkpoint, whose config.json is not at hand."""
    path = r.args.speculative_draft_model_path
    return r.model.hf if path is not None and path == r.args.model_path else None


def text_config(config: HfConfig) -> HfConfig:
    """The draft's text part, or the whole where it has none."""
    text = config.get("text_config")
    return text if isinstance(text, HfConfig) else config


def block_size(config: HfConfig) -> int | None:
    """Tokens of one drafted block, from ``dflash_config`` or the top level.

    Raises:
        ValueError, TypeError: not a positive integer.
    """
    nested = config.get("dflash_config")
    value: Any = None
    if isinstance(nested, (Mapping, HfConfig)):
        value = nested.get("block_size")
    if value is None:
        value = config.get("block_size")
    if value is None:
        return None
    size = int(value)
    if size < 1:
        raise ValueError("block_size")
    return size
