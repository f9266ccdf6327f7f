"""A list with one name a layer: ``layer_types``, ``layers_block_type``, ``mixer_types`` and their like."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject
from engine.models.families.recurrence import linear_of, mamba_of

_FIELDS = ("layers_block_type", "layer_types", "mixer_types")

_PLAIN: Mapping[str, LayerKind] = {
    "full_attention": "attention",
    "attention": "attention",
    "attn": "attention",
    "full": "attention",
    "global": "attention",
    "minicpm4": "attention",
    "sliding_attention": "sliding_attention",
    "window_attention": "sliding_attention",
    "sliding_window": "sliding_attention",
    "swa": "sliding_attention",
    "local": "sliding_attention",
    "local_attention": "sliding_attention",
    "chunked_attention": "chunked_attention",
    "mamba1": "mamba",
    "mamba2": "mamba2",
    "conv": "shortconv",
    "short_conv": "shortconv",
    "jet": "gdn",
    "gated_deltanet": "gdn",
    "gdn": "gdn",
    "kda": "kda",
    "lightning": "lightning",
    "lightning-attn": "lightning",
    "lightning_attention": "lightning",
    "rwkv": "rwkv",
    "mlp": "mlp",
    "moe": "moe",
}


def _hybrid(subject: Subject) -> LayerKind:
    """ZAYA's layers convolve their queries and keys; elsewhere (Zamba2) it is a Mamba layer with shared attention."""
    return "attention+shortconv" if subject.is_a("zaya") else "attention+mamba2"


_BY_FAMILY: Mapping[str, Callable[[Subject], LayerKind]] = {
    "mamba": mamba_of,
    "linear_attention": linear_of,
    "linear": linear_of,
    "hybrid": _hybrid,
    "hybrid_sliding": _hybrid,
}


def read(subject: Subject) -> Layers | None:
    """One name a layer."""
    for field in _FIELDS:
        names = subject.text.names(field)
        if not names:
            continue
        names, notes = subject.fitted(field, names)
        kinds: dict[str, LayerKind] = {}
        for index, name in enumerate(names):
            if name not in kinds:
                kinds[name] = _kind(subject, field, index, name)
        return Layers(kinds=tuple(kinds[name] for name in names), evidence=subject.text.at(field), notes=notes)
    return None


def _kind(subject: Subject, field: str, index: int, name: str) -> LayerKind:
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _BY_FAMILY:
        return _BY_FAMILY[name](subject)
    if name.endswith("attention"):  # sparse, indexed, compressed: no recurrent state
        return "attention"
    known = ", ".join(sorted((*_PLAIN, *_BY_FAMILY)))
    raise subject.text.wrong(f"{field}[{index}]", f"{name[:60]!r} is no known kind of layer", f"Known are {known}.")
