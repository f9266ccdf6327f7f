"""A config.json becomes :class:`~engine.models.facts.ModelFacts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, get_args

from engine.errors import ConfigUnreadable
from engine.models import shapes
from engine.models.facts import HybridFamily, LayerKind, ModelFacts, Source
from engine.models.families import layers_of
from engine.models.families.base import Layers, Subject, layer_count
from engine.models.fields import Fields
from engine.models.parsing import check_depth, read_config
from engine.models.text_config import is_multimodal, text_config_of

__all__ = ["facts_of", "read_config"]

_STATE: frozenset[str] = frozenset(get_args(HybridFamily)) - {"none"}
_NOTHING = "The config names no architecture, no model_type and no layers: it is not a language model's config.json."


def facts_of(
    config: Mapping[str, Any], *, model_id: str | None = None, source: Source = "inline", revision: str | None = None
) -> ModelFacts:
    """The facts in a parsed config.json. The config itself is kept, not copied.

    Raises:
        ConfigUnreadable: a field of the wrong form, or fields that contradict each other; ``field`` names it.
    """
    if not isinstance(config, Mapping):
        raise ConfigUnreadable("The config is not an object.", remedy="Give the config.json as a JSON object.")
    check_depth(config)
    whole = Fields(config)
    text = text_config_of(whole)
    architectures = whole.names("architectures") or ()
    inner_architectures = (text.names("architectures") or ()) if text is not whole else ()
    model_type, text_model_type = whole.text("model_type"), text.text("model_type")
    count = layer_count(text)
    types = tuple(dict.fromkeys(t for t in (text_model_type, model_type) if t))
    layers = layers_of(
        Subject(text=text, types=types, architectures=(*inner_architectures, *architectures), count=count)
    )
    if not architectures and not types and not layers.kinds and count is None:
        raise ConfigUnreadable(_NOTHING, remedy="Give the config.json that lies beside the model's weights.")
    hybrid, mixed = _hybrid_of(layers)
    return ModelFacts(
        model_id=model_id,
        source=source,
        revision=revision,
        architectures=architectures,
        model_type=model_type,
        text_config_key=text.path,
        text_architectures=inner_architectures,
        text_model_type=text_model_type if text is not whole else None,
        num_layers=len(layers.kinds),
        layer_kinds=layers.kinds,
        attention=shapes.attention_of(text, layers.kinds),
        hybrid=hybrid,
        hybrid_evidence=layers.evidence if hybrid != "none" else "",
        multimodal=is_multimodal(whole),
        context_length=text.count(*shapes.CONTEXT) or whole.count(*shapes.CONTEXT),
        sliding_window=_window(text),
        hidden_size=text.count(*shapes.HIDDEN),
        intermediate_size=text.count(*shapes.INTERMEDIATE),
        num_attention_heads=text.count(*shapes.HEADS),
        num_key_value_heads=shapes.key_value_heads(text),
        head_dim=text.count("head_dim", "head_size", "kv_channels"),
        vocab_size=text.count("vocab_size", "padded_vocab_size") or whole.count("vocab_size"),
        num_experts=text.count(*shapes.EXPERTS) or None,
        experts_per_token=text.count(*shapes.TOP_K) or None,
        mtp_layers=text.count(*shapes.MTP) or whole.count(*shapes.MTP) or 0,
        quantization=_quantization(whole) or _quantization(text),
        dtype=_dtype(text) or _dtype(whole),
        linear=shapes.linear_shape(hybrid, text),
        notes=tuple(_notes(architectures, inner_architectures, text, count, layers, mixed)),
        config=config,
    )


def _hybrid_of(layers: Layers) -> tuple[HybridFamily, tuple[str, ...]]:
    """The state that most of the state-carrying layers keep, and all kinds of state where there is more than one."""
    carried: Counter[HybridFamily] = Counter()
    for kind, times in Counter(layers.kinds).items():
        state = _state(kind)
        if state != "none":
            carried[state] += times
    if not carried:
        return "none", ()
    return carried.most_common(1)[0][0], tuple(carried) if len(carried) > 1 else ()


def _state(kind: LayerKind) -> HybridFamily:
    last = kind.rsplit("+", 1)[-1]
    return last if last in _STATE else "none"  # type: ignore[return-value]  # the names of states, by _STATE


def _window(text: Fields) -> int | None:
    if text.get("use_sliding_window") is False:
        return None
    return text.count("sliding_window", "sliding_window_size") or None


def _quantization(fields: Fields) -> str | None:
    """The checkpoint's own quantization method, as it names it."""
    for name in ("quantization_config", "compression_config"):
        given = fields.object(name)
        if given is None:
            continue
        method = given.text("quant_method") or given.text("quant_algo")
        if method is None:
            inner = given.object("quantization")
            method = inner.text("quant_algo") if inner else None
        if method:
            return method
    return None


def _dtype(fields: Fields) -> str | None:
    for name in ("dtype", "torch_dtype"):
        value = fields.get(name)
        if isinstance(value, str):
            return value.removeprefix("torch.")
    return None


def _notes(
    outer: tuple[str, ...],
    inner: tuple[str, ...],
    text: Fields,
    count: int | None,
    layers: Layers,
    mixed: tuple[str, ...],
) -> list[str]:
    notes = list(layers.notes)
    if not outer:
        notes.append("The config names no architecture.")
    elif inner and inner[0] != outer[0]:
        notes.append(f"Served as {outer[0]}; the text config inside it is of {inner[0]}.")
    if count is None and not layers.kinds:
        place = text.path or "The config"
        notes.append(f"{place} names no layer count: the default of the model's class holds.")
    if mixed:
        notes.append(f"Layers carry more than one kind of state: {', '.join(mixed)}.")
    return notes
