"""Attention models: which layers see everything, which a window, which a chunk. None of them keeps recurrent state."""

from __future__ import annotations

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject

_PATTERNS = ("sliding_window_pattern", "_sliding_window_pattern")
_ALTERNATING = ("gemma2", "gemma2_text")
_GEMMA3 = ("gemma3", "gemma3_text", "gemma3n", "gemma3n_text")
_LLAMA4 = ("llama4", "llama4_text")


def read(subject: Subject) -> Layers | None:
    """Every layer of a model without recurrent layers; never None."""
    count, text = subject.count or 0, subject.text
    if subject.is_a(*_LLAMA4) and text.has("attention_chunk_size"):
        return Layers(kinds=_every(count, 4, "chunked_attention"), evidence=text.at("attention_chunk_size"))
    window = text.count("sliding_window", "sliding_window_size")
    if not window or text.flag("use_sliding_window") is False:
        everywhere: list[LayerKind] = ["attention"] * count
        return Layers(kinds=tuple(everywhere))
    for field in _PATTERNS:
        period = text.count(field) if not isinstance(text.get(field), (str, list)) else None
        if period:
            return Layers(kinds=_every(count, period, "sliding_attention"), evidence=text.at(field))
    if subject.is_a(*_ALTERNATING):
        return Layers(kinds=_every(count, 2, "sliding_attention"), evidence=text.at("sliding_window"))
    if subject.is_a(*_GEMMA3):
        return Layers(kinds=_every(count, 6, "sliding_attention"), evidence=text.at("sliding_window"))
    start = text.count("max_window_layers") if text.flag("use_sliding_window") else 0
    kinds: list[LayerKind] = ["attention" if i < (start or 0) else "sliding_attention" for i in range(count)]
    return Layers(kinds=tuple(kinds), evidence=text.at("sliding_window"))


def _every(count: int, period: int, kind: LayerKind) -> tuple[LayerKind, ...]:
    """Full attention at the end of every period, ``kind`` elsewhere."""
    return tuple("attention" if (i + 1) % period == 0 else kind for i in range(count))
