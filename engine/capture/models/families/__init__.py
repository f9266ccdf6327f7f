"""One layer family, one file. Importing this package imports every file in it, and each registers its kinds."""

from __future__ import annotations

import importlib
import pkgutil

from engine.capture.models.mixer import Mixer, UnsupportedLayer, factories
from engine.capture.shape import ModelShape

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def mixers_for(shape: ModelShape, layer: int) -> list[Mixer]:
    """The mixers of one layer: none for a bare MLP layer, two where two work side by side.

    Raises:
        UnsupportedLayer: naming the kind, and the kinds that there are.
    """
    kind = shape.layer_kinds[layer]
    if kind in ("mlp", "moe"):
        return []
    mixers = []
    for part in kind.split("+"):
        factory = factories().get("mla" if part == "attention" and shape.attention == "mla" else part)
        if factory is None:
            raise UnsupportedLayer(
                f"The capture worker has no reference kernel for layers of kind {part!r} "
                f"(layer {layer} of {shape.architecture or 'the model'}), and does not stand another in for it. "
                f"It has: {', '.join(sorted(factories()))}."
            )
        mixers.append(factory(shape, layer))
    return mixers
