"""Heads, head sizes, layers and the kind of attention, as the engine derives them from a configuration.

Facts: ``sglang/srt/configs/model_config.py`` (``_derive_model_shapes``, ``_derive_hybrid_model``, 0.5.23). What an
architecture's name alone decides comes from the release's table of shapes, which holds the engine's own answers to a
probing configuration with these values: head size 80, value head size 112, 30 + 7 dimensions of the MLA query, 10
layers.
"""

from __future__ import annotations

from typing import Any

from engine.sglang.hf_config import HfConfig
from engine.sglang.model_tables import ArchitectureLists
from engine.sglang.resolution import Refusal

_PROBE_HEAD, _PROBE_VALUE, _PROBE_MLA = 80, 112, 37
_PROBE_LAYERS = 10


def derive(text: HfConfig, architectures: tuple[str, ...], lists: ArchitectureLists) -> dict[str, Any]:
    """The model's shapes, by the names of the engine's ``ModelConfig``.

    Raises:
        Refusal: AttributeError where the configuration lacks what the engine needs.
    """
    shape = next((lists.shapes[name] for name in architectures if name in lists.shapes), None)
    kind, head_rule, value_rule, layer_rule = _rule(shape, text)
    head = text.get("head_dim")
    if head is None:
        head = 0 if kind == "SSM" else text.require("hidden_size") // text.require("num_attention_heads")
    value = text.get("v_head_dim")
    if value is None or value == 0:
        value = head
    swa_head = text.get("swa_head_dim")
    swa_head = head if swa_head is None else swa_head
    swa_value = text.get("swa_v_head_dim")
    swa_value = swa_head if swa_value is None else swa_value
    if kind == "MLA":
        for name in ("kv_lora_rank", "qk_rope_head_dim"):
            text.require(name)
    if head_rule == _PROBE_MLA:
        head = text.require("qk_nope_head_dim") + text.require("qk_rope_head_dim")
    elif head_rule not in (_PROBE_HEAD, None):
        head = head_rule
    if value_rule == _PROBE_HEAD:
        value = head
    heads = text.get("num_attention_heads") if lists.since(0, 5, 20) else text.require("num_attention_heads")
    kv_heads = text.get("num_key_value_heads")
    layers = text.require("num_hidden_layers")
    out = {
        "attention_arch": kind,
        "head_dim": head,
        "v_head_dim": value,
        "swa_head_dim": swa_head,
        "swa_v_head_dim": swa_value,
        "has_asymmetric_kv": head != value or swa_head != swa_value,
        "num_attention_heads": heads,
        "num_key_value_heads": heads if kv_heads is None else kv_heads,
        "hidden_size": text.require("hidden_size"),
        "num_hidden_layers": layers,
        "num_attention_layers": _attention_layers(layer_rule, layers, text),
        "num_nextn_predict_layers": text.get("num_nextn_predict_layers"),
    }
    out["vocab_size"] = text.require("vocab_size")
    return out


def _rule(shape: Any, text: HfConfig) -> tuple[str, int | None, int | None, int]:
    if shape is None:
        return "MHA", None, None, _PROBE_LAYERS
    if not text.get("use_mla", True):
        found = shape["no_mla"]
    elif text.get("kv_lora_rank") is None:
        found = shape["without_lora"]
    else:
        found = shape["with_lora"]
    if len(found) != 4:
        raise Refusal("AttributeError", f"'{text.class_name}' object has no attribute 'kv_lora_rank'")
    return found[0], found[1], found[2], found[3]


def _attention_layers(rule: int, layers: int, text: HfConfig) -> int:
    if rule == 2 * _PROBE_LAYERS:
        return 2 * layers
    if rule == 3 * _PROBE_LAYERS:
        return layers * int(text.get("loop_num", 1))
    if rule == 5 * _PROBE_LAYERS:
        return layers * int(text.get("num_loops", 1))
    if rule == 8:
        return int(text.get("encoder_layers", 0)) + 2 * int(text.get("decoder_layers", layers))
    return layers


def is_hybrid_swa(text: HfConfig, architectures: tuple[str, ...], lists: ArchitectureLists) -> bool:
    """Whether the engine keeps sliding-window layers in a pool of their own."""
    if lists.any("hybrid_swa", architectures):
        if "BeamForCausalLM" in architectures:
            return "sliding_attention" in text.require("layer_types")
        return not ("LagunaForCausalLM" in architectures and not text.get("sliding_window", 0))
    return bool(text.get("is_hybrid_swa", False))


def has_attention_sinks(text: HfConfig, architectures: tuple[str, ...], lists: ArchitectureLists) -> bool:
    """Whether the model learns attention sinks, which some kernels do not serve."""
    if lists.any("attention_sinks", architectures):
        return True
    if not {"MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM", "MiMoV2MTP"}.isdisjoint(architectures):
        return bool(text.get("add_swa_attention_sink_bias", False) or text.get("add_full_attention_sink_bias", False))
    return bool(text.get("learnable_sink", False)) and lists.since(0, 5, 20)


def total_kv_heads(hf: HfConfig, text: HfConfig, attention_arch: str) -> int:
    """Key/value heads of the whole model (``get_total_num_kv_heads``)."""
    model_type = hf.get("model_type")
    falcon = model_type in ("falcon", "RefinedWeb", "RefinedWebModel") and hf.get("new_decoder_architecture", False)
    if not falcon and text.get("multi_query", False):
        return 1
    if model_type in ("mpt", "dbrx"):
        attention = hf.get("attn_config")
        inside = attention.get("kv_n_heads") if isinstance(attention, dict | HfConfig) else None
        return int(inside or hf.require("num_attention_heads"))
    for name in (
        "n_head_kv",
        "num_kv_heads",
        "num_key_value_heads",
        "multi_query_group_num",
        "num_attention_groups",
    ):
        value = text.get(name)
        if value is not None:
            return int(value)
    return 0 if attention_arch == "SSM" else int(text.require("num_attention_heads"))
