"""``linear_attn_config``: two lists of layer numbers, counted from 1 (Kimi-Linear, Kimi-K3)."""

from __future__ import annotations

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject

_FIELD = "linear_attn_config"


def read(subject: Subject) -> Layers | None:
    """The layers of ``kda_layers`` carry KDA state, the others are attention.

    Layers are counted from 1, except in GLM-5-Next's, which count from 0.
    Sources: ``sglang/srt/configs/kimi_linear.py`` and ``glm5_next.py``, 0.5.23.
    """
    inner = subject.text.object(_FIELD)
    if inner is None or not inner.has("kda_layers"):
        return None
    first = 0 if subject.is_a("glm5_next", "glm5_next_text") else 1
    listed = inner.numbers("kda_layers") or ()
    count = subject.needed_count(_FIELD)
    for index, number in enumerate(listed):
        if not first <= number < count + first:
            raise inner.wrong(
                f"kda_layers[{index}]",
                f"There is no layer {number}: layers are counted from {first}, and there are {count}",
            )
    linear = set(listed)
    attention = set(inner.numbers("full_attn_layers") or ())
    both = linear & attention
    if both:
        raise inner.wrong("full_attn_layers", f"Layer {min(both)} stands in kda_layers too")
    kinds: list[LayerKind] = ["kda" if i + first in linear else "attention" for i in range(count)]
    return Layers(kinds=tuple(kinds), evidence=inner.at("kda_layers"))
