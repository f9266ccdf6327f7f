"""A model's style out of its config: one row a model type for what its class fixes, and keys for what it reads.

A row says what the published model's code does whatever the config says (transformers 5.19, models/<type>; for Jet-
Nemotron and Bailing SGLang 0.5.23, models/; for RWKV-5 its paper). A model type without a row is a plain decoder:
rotary positions, SwiGLU, softmax routing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.capture.style import FeedForward, Multipliers, Routing, Style
from engine.models.facts import LayerKind, ModelFacts

_DEEPSEEK: Mapping[str, Any] = {"scoring": "sigmoid", "selection_bias": True, "shared": "plain"}
_QWEN_NEXT: Mapping[str, Any] = {
    "head_norm": True,
    "output_gate": True,
    "rotary_fraction": 0.25,
    "routing": {"shared": "gated"},
}
_LFM2: Mapping[str, Any] = {"head_norm": True, "routing": {"scoring": "sigmoid", "selection_bias": True}}
_GRANITE: Mapping[str, Any] = {"routing": {"shared": "plain"}}

ROWS: Mapping[str, Mapping[str, Any]] = {
    "bailing_hybrid": {"variant": "bailing", "head_norm": True, "routing": _DEEPSEEK},
    "bailing_moe_linear": {"variant": "bailing", "head_norm": True, "routing": _DEEPSEEK},
    "bamba": {"rotary_fraction": 0.5},
    "deepseek_v2": {"rope": "pairs", "routing": {"normalise": False, "shared": "plain"}},
    "deepseek_v3": {"rope": "pairs", "routing": _DEEPSEEK},
    "deepseek_v32": {"rope": "pairs", "routing": _DEEPSEEK},
    "falcon_h1": {"mamba2_norm": "none"},
    "falcon_mamba": {"mamba_norms": "weightless"},
    "glm4_moe": {"head_norm": True, "rotary_fraction": 0.5, "routing": _DEEPSEEK},
    "gpt_oss": {
        "activation": "clamped_swiglu",
        "sinks": True,
        "qkv_bias": True,
        "output_bias": True,
        "routing": {"logit_bias": True},
    },
    "granitemoehybrid": _GRANITE,
    "granitemoeshared": _GRANITE,
    "inkling": {"variant": "inkling", "rope": "none", "routing": _DEEPSEEK},
    "inkling_mm_model": {"variant": "inkling", "rope": "none", "routing": _DEEPSEEK},
    "inkling_text": {"variant": "inkling", "rope": "none", "routing": _DEEPSEEK},
    "jamba": {"rope": "none", "mamba_norms": "weighted", "routing": {"normalise": False}},
    "jet_nemotron": {"variant": "jet", "qkv_bias": True},
    "kimi_k2": {"rope": "pairs", "routing": _DEEPSEEK},
    "kimi_k3": {"rope": "none", "routing": _DEEPSEEK},
    "kimi_linear": {"rope": "none", "routing": _DEEPSEEK},
    "lfm2": _LFM2,
    "lfm2_moe": _LFM2,
    "lfm2_vl": _LFM2,
    "minimax": {"normed_residual": True},
    "minimax_m1": {"normed_residual": True},
    "nemotron_h": {
        "rope": "none",
        "activation": "relu2",
        "mamba2_norm": "grouped",
        "routing": _DEEPSEEK,
    },
    "qwen2": {"qkv_bias": True},
    "qwen2_moe": {"qkv_bias": True, "routing": {"normalise": False, "shared": "gated"}},
    "qwen3": {"head_norm": True},
    "qwen3_5": _QWEN_NEXT,
    "qwen3_5_moe": _QWEN_NEXT,
    "qwen3_5_moe_text": _QWEN_NEXT,
    "qwen3_5_text": _QWEN_NEXT,
    "qwen3_moe": {"head_norm": True},
    "qwen3_next": _QWEN_NEXT,
    "qwen3_vl_moe_text": {"head_norm": True},
    "qwen3_vl_text": {"head_norm": True},
    "rwkv5": {"variant": "eagle"},
    "zaya": {"variant": "zaya", "rotary_fraction": 0.5},
}

_STYLE_KEYS: Mapping[str, tuple[str, ...]] = {
    "rope_theta": ("rope_theta",),
    "rotary_fraction": ("partial_rotary_factor",),
    "mixer_eps": ("mixer_rms_eps",),
    "norm_eps": ("rms_norm_eps", "layer_norm_epsilon", "norm_eps"),
}
_ROUTING_KEYS: Mapping[str, tuple[str, ...]] = {
    "normalise": ("norm_topk_prob", "moe_renormalize"),
    "scale": ("routed_scaling_factor",),
    "groups": ("n_group", "num_expert_group"),
    "top_groups": ("topk_group",),
}
_FACTOR_KEYS: Mapping[str, tuple[str, ...]] = {
    "embedding": ("embedding_multiplier",),
    "logits": ("lm_head_multiplier",),
    "residual": ("residual_multiplier",),
    "attention": ("attention_multiplier",),
    "attention_in": ("attention_in_multiplier",),
    "attention_out": ("attention_out_multiplier",),
    "key": ("key_multiplier",),
    "ssm_in": ("ssm_in_multiplier",),
    "ssm_out": ("ssm_out_multiplier",),
}
_ONE_BLOCK = {"falcon_mamba", "mamba", "mamba2", "nemotron_h"}
"""Model types whose layers are one block each: a mixer, or a feed-forward, never both; so are those of every model that
has layers of a feed-forward alone."""


def text_config(facts: ModelFacts) -> Mapping[str, Any]:
    """The part of the config that describes the decoder; empty where there is none."""
    text: Any = facts.config
    for key in filter(None, facts.text_config_key.split(".")):
        text = text.get(key) if isinstance(text, Mapping) else None
    return text if isinstance(text, Mapping) else {}


def style_of(facts: ModelFacts) -> Style:
    """The model's style; values that its config does not give are its class's."""
    text = text_config(facts)
    row = dict(_row(facts))
    ropes = text.get("rope_parameters")
    turned = {**text, **ropes} if isinstance(ropes, Mapping) else text
    style = {**row, **_found(turned, _STYLE_KEYS)}
    style["routing"] = _routing(text, row.get("routing", {}))
    style["multipliers"] = _multipliers(text)
    if text.get("position_embedding_type") == "nope" or text.get("rope_interleave") is False:
        style["rope"] = "none" if text.get("position_embedding_type") == "nope" else "halves"
    if facts.model_type == "falcon_h1" and text.get("mamba_rms_norm"):
        style["mamba2_norm"] = "grouped"
    return Style(**style)


def feed_forwards(facts: ModelFacts) -> tuple[FeedForward, ...]:
    """What follows the mixer in each layer."""
    text = text_config(facts)
    single = not _ONE_BLOCK.isdisjoint((facts.text_model_type, facts.model_type))
    single = single or not {"mlp", "moe"}.isdisjoint(facts.layer_kinds)
    routed = _routed(text, len(facts.layer_kinds)) if facts.num_experts else [False] * len(facts.layer_kinds)
    return tuple(_after(kind, has, single=single) for kind, has in zip(facts.layer_kinds, routed, strict=True))


def _after(kind: LayerKind, routed: bool, *, single: bool) -> FeedForward:
    if kind in ("moe", "mlp"):
        return "experts" if kind == "moe" else "dense"
    if single:
        return "none"
    return "experts" if routed else "dense"


def _routed(text: Mapping[str, Any], count: int) -> Sequence[bool]:
    """Which layers have experts, by whichever key the config writes it."""
    for keys, rule in _EXPERT_LAYERS:
        if all(text.get(key) is not None for key in keys):
            return [rule(i, *(text[key] for key in keys)) for i in range(count)]
    return [True] * count


_EXPERT_LAYERS: Sequence[tuple[tuple[str, ...], Callable[..., bool]]] = (
    (("mlp_layer_types",), lambda i, kinds: i >= len(kinds) or kinds[i] == "sparse"),
    (("expert_layer_period", "expert_layer_offset"), lambda i, period, offset: i % period == offset),
    (("first_k_dense_replace",), lambda i, dense: i >= dense),
    (("num_dense_layers",), lambda i, dense: i >= dense),
    (("interleave_moe_layer_step",), lambda i, step: (i + 1) % step == 0),
    (("decoder_sparse_step", "mlp_only_layers"), lambda i, step, dense: i not in dense and (i + 1) % step == 0),
)


def _row(facts: ModelFacts) -> Mapping[str, Any]:
    stem = (facts.architecture or "").removesuffix("ForCausalLM")
    by_class = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()  # for a config that names no type
    named = (facts.text_model_type or "", facts.model_type or "", by_class)
    return next((ROWS[name] for name in named if name in ROWS), {})


def _routing(text: Mapping[str, Any], row: Mapping[str, Any]) -> Routing:
    routing = {**row, **_found(text, _ROUTING_KEYS)}
    shared = text.get("n_shared_experts", text.get("num_shared_experts"))
    if row.get("shared") == "plain" and shared == 0:
        routing["shared"] = "none"
    return Routing(**routing)


def _multipliers(text: Mapping[str, Any]) -> Multipliers:
    factors: dict[str, Any] = _found(text, _FACTOR_KEYS)
    if isinstance(text.get("logits_scaling"), (int, float)) and text["logits_scaling"]:
        factors["logits"] = 1.0 / text["logits_scaling"]
    if isinstance(text.get("ssm_multipliers"), Sequence) and len(text["ssm_multipliers"]) == 5:
        factors["ssm"] = tuple(map(float, text["ssm_multipliers"]))
    if isinstance(text.get("mlp_multipliers"), Sequence) and len(text["mlp_multipliers"]) == 2:
        factors["mlp_gate"], factors["mlp_down"] = map(float, text["mlp_multipliers"])
    for name, end in (("kept", "alpha_factor"), ("added", "beta_factor")):
        keys = (f"full_attn_{end}", f"linear_attn_{end}", f"mlp_{end}")
        if all(isinstance(text.get(key), (int, float)) for key in keys):
            factors[name] = tuple(float(text[key]) for key in keys)
    return Multipliers(**factors)


def _found(text: Mapping[str, Any], keys: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Of each value the first of its keys that the config gives as a number or a switch."""
    found: dict[str, Any] = {}
    for name, spellings in keys.items():
        value = next((text[key] for key in spellings if isinstance(text.get(key), (bool, int, float))), None)
        if value is not None:
            found[name] = value
    return found
