"""One layer family, one file. Importing this package imports every file in it, and each registers its kinds."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from engine.capture.models.mixer import Mixing, UnsupportedLayer, factories
from engine.capture.shape import ModelShape

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


SIDE_BY_SIDE = {("attention", "mamba2")}
"""Pairs of mixers that models run on the same input and add up (Falcon-H1)."""

OTHERWISE: Mapping[tuple[str | None, str], str] = {
    ("Zamba2ForCausalLM", "attention+mamba2"): "its attention is a block that several layers share",
}
"""Architectures whose layers of a kind compute something else than the kernel of that kind here."""


def mixings_for(shape: ModelShape, layer: int) -> list[Mixing]:
    """What mixes tokens in one layer: nothing in a bare feed-forward layer, two where two work side by side.

    Raises:
        UnsupportedLayer: naming the kind, and the kinds that there are.
    """
    kind = shape.layer_kinds[layer]
    if kind in ("mlp", "moe"):
        return []
    otherwise = OTHERWISE.get((shape.architecture, kind))
    if otherwise is not None:
        raise _unsupported(shape, layer, kind, f": {otherwise}")
    own = factories().get(f"{shape.style.variant}:{kind}")
    if own is not None:
        return [own(shape, layer)]
    parts = kind.split("+")
    if len(parts) > 1 and tuple(parts) not in SIDE_BY_SIDE:
        raise _unsupported(shape, layer, kind)
    mixings = []
    for part in parts:
        factory = factories().get("mla" if part == "attention" and shape.attention == "mla" else part)
        if factory is None:
            raise _unsupported(shape, layer, part)
        mixings.append(factory(shape, layer))
    return mixings


def of_variant(shape: ModelShape, layer: int, part: str) -> Mixing | None:
    """What the models of some variants have as ``feed_forward``, or ``after_feed_forward``."""
    factory = factories().get(f"{shape.style.variant}:{part}")
    return None if factory is None else factory(shape, layer)


def _unsupported(shape: ModelShape, layer: int, kind: str, why: str = "") -> UnsupportedLayer:
    return UnsupportedLayer(
        f"The capture worker has no reference kernel for layers of kind {kind!r} "
        f"(layer {layer} of {shape.architecture or 'the model'}){why}, and does not stand another in for it. "
        f"It has: {', '.join(sorted(factories()))}."
    )
