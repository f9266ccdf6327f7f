"""Where a config keeps what its language model is made of: at the top, or in one of several nested objects."""

from __future__ import annotations

from engine.models.families.base import layer_count
from engine.models.fields import Fields

_NESTED = (
    "thinker_config",
    "text_config",
    "llm_config",
    "language_config",
    "language_model",
    "text_model_config",
    "decoder_config",
)
_SIGNS = ("hidden_size", "n_embd", "d_model", "num_attention_heads", "model_type", "architectures")
_OTHER_INPUTS = (
    "vision_config",
    "audio_config",
    "sound_config",
    "speech_config",
    "acoustic_tokenizer_config",
    "vit_config",
    "vision_tower",
    "mm_vision_tower",
    "mm_vision_tower_name",
    "vision_tower_cfg",
    "visual",
    "num_mel_bins",
)


def text_config_of(config: Fields) -> Fields:
    """The text config: the nested object that describes a language model, else the config itself.

    Nested objects nest (``thinker_config.text_config``). A nested object that says nothing about layers gives way to
    a config that says it at the top.

    Raises:
        ConfigUnreadable: a nested text config that is no object.
    """
    for name in _NESTED:
        value = config.get(name)
        if name == "language_model" and not isinstance(value, dict):
            continue  # the name of a checkpoint, in some
        nested = config.object(name)
        if nested is None or not nested.values:
            continue
        inner = text_config_of(nested)
        if layer_count(inner) is None and layer_count(config) is not None:
            continue
        if layer_count(inner) is not None or any(inner.has(sign) for sign in _SIGNS):
            return inner
    return config


def is_multimodal(config: Fields) -> bool:
    """Whether the config, or one that wraps its text config, describes other inputs than text."""
    if any(config.get(name) for name in _OTHER_INPUTS):
        return True
    thinker = config.get("thinker_config")
    return isinstance(thinker, dict) and any(thinker.get(name) for name in _OTHER_INPUTS)
