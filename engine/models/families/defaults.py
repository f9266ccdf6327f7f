"""Hybrid models whose config leaves the layer list out: the engine's own default pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject

_DEFAULTS: Mapping[str, tuple[LayerKind, Callable[[int], bool]]] = {
    "granitemoehybrid": ("mamba2", lambda i: (i + 1) % 6 == 0),
    "glm5_next": ("kda", lambda i: i % 4 == 3),
    "glm5_next_text": ("kda", lambda i: i % 4 == 3),
    "qwen3_next": ("gdn", lambda i: (i + 1) % 4 == 0),
    "qwen3_5_text": ("gdn", lambda i: (i + 1) % 4 == 0),
    "qwen3_5_moe_text": ("gdn", lambda i: (i + 1) % 4 == 0),
}
"""model_type: (the recurrent kind, whether layer i is attention).

Sources: ``sglang/srt/configs/granitemoehybrid.py``, ``glm5_next.py`` and ``qwen3_next.py``, 0.5.23.
"""


def read(subject: Subject) -> Layers | None:
    """The default pattern of the model_type, said in a note."""
    for name in subject.types:
        if name in _DEFAULTS:
            recurrent, is_attention = _DEFAULTS[name]
            count = subject.needed_count("model_type")
            return Layers(
                kinds=tuple("attention" if is_attention(i) else recurrent for i in range(count)),
                evidence=subject.text.at("model_type"),
                notes=(f"The config lists no layers; the default pattern of {name} is taken.",),
            )
    return None
