"""One layer family, one file. Importing this package imports every file in it, and each registers its kinds."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from engine.capture.models.mixer import Mixer, UnsupportedLayer, factories
from engine.capture.shape import ModelShape

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


SIDE_BY_SIDE = {("attention", "mamba2")}
"""Pairs of mixers that models run on the same input and add up (Falcon-H1)."""

OTHERWISE: Mapping[tuple[str | None, str], str] = {
    ("JetNemotronForCausalLM", "gdn"): "its convolution kernels are themselves computed from the input",
    ("ZayaForCausalLM", "attention+shortconv"): "its convolutions lie inside the attention's own projections",
    ("InklingForConditionalGeneration", "attention+shortconv"): "its convolutions lie around the attention",
}
"""Architectures whose layers of a kind compute something else than the kernel of that kind here."""


def mixers_for(shape: ModelShape, layer: int) -> list[Mixer]:
    """The mixers of one layer: none for a bare MLP layer, two where two work side by side.

    Raises:
        UnsupportedLayer: naming the kind, and the kinds that there are.
    """
    kind = shape.layer_kinds[layer]
    if kind in ("mlp", "moe"):
        return []
    parts = kind.split("+")
    otherwise = OTHERWISE.get((shape.architecture, kind))
    if otherwise is not None:
        raise _unsupported(shape, layer, kind, f": {otherwise}")
    if len(parts) > 1 and tuple(parts) not in SIDE_BY_SIDE:
        raise _unsupported(shape, layer, kind)
    mixers = []
    for part in parts:
        factory = factories().get("mla" if part == "attention" and shape.attention == "mla" else part)
        if factory is None:
            raise _unsupported(shape, layer, part)
        mixers.append(factory(shape, layer))
    return mixers


def _unsupported(shape: ModelShape, layer: int, kind: str, why: str = "") -> UnsupportedLayer:
    return UnsupportedLayer(
        f"The capture worker has no reference kernel for layers of kind {kind!r} "
        f"(layer {layer} of {shape.architecture or 'the model'}){why}, and does not stand another in for it. "
        f"It has: {', '.join(sorted(factories()))}."
    )
