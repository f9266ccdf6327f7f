"""What a model's config.json says that bears on CUDA graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Source = Literal["hub", "local", "inline", "catalogue"]

AttentionKind = Literal["mha", "gqa", "mqa", "mla", "none"]

HybridFamily = Literal["none", "mamba", "mamba2", "gdn", "kda", "lightning", "shortconv", "rwkv"]
"""The recurrent state that some layers carry. ``none``: every mixing layer is attention."""

LayerKind = Literal[
    "attention",
    "sliding_attention",
    "chunked_attention",
    "mamba",
    "mamba2",
    "gdn",
    "kda",
    "lightning",
    "shortconv",
    "rwkv",
    "attention+mamba2",
    "attention+shortconv",
    "mlp",
    "moe",
]
"""What one layer is made of. ``a+b``: both mixers in one layer. ``mlp``/``moe``: a layer with no mixer at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearShape:
    """Dimensions of the recurrent mixers, as far as the config gives them (heads, channels, taps).

    ``state_size`` is Mamba's N, or the key head dimension of a delta rule; ``chunk_size`` the scan chunk in tokens.
    """

    num_key_heads: int | None = None
    num_value_heads: int | None = None
    key_head_dim: int | None = None
    value_head_dim: int | None = None
    conv_kernel: int | None = None
    state_size: int | None = None
    num_groups: int | None = None
    intermediate_size: int | None = None
    chunk_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The facts of one model.

    ``architecture`` is the one that an engine serves by (the first of ``architectures``; None where the config names
    none). ``text_config_key`` is the dotted path of the text config inside the config ("" at the top level).
    ``layer_kinds`` has one entry a decoder layer, in order. ``hybrid_evidence`` names the config field that proves
    ``hybrid`` ("" for none). ``context_length`` is in tokens. ``config`` is the config itself where it was read whole,
    or the part of it that engines' argument resolution reads where the catalogue answers; nested as in the file.
    """

    model_id: str | None
    source: Source
    revision: str | None = None
    architectures: tuple[str, ...] = ()
    model_type: str | None = None
    text_config_key: str = ""
    text_architectures: tuple[str, ...] = ()
    text_model_type: str | None = None
    num_layers: int = 0
    layer_kinds: tuple[LayerKind, ...] = ()
    attention: AttentionKind = "none"
    hybrid: HybridFamily = "none"
    hybrid_evidence: str = ""
    multimodal: bool = False
    context_length: int | None = None
    sliding_window: int | None = None
    hidden_size: int | None = None
    intermediate_size: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    vocab_size: int | None = None
    num_experts: int | None = None
    experts_per_token: int | None = None
    mtp_layers: int = 0
    quantization: str | None = None
    dtype: str | None = None
    linear: LinearShape | None = None
    notes: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def architecture(self) -> str | None:
        """The architecture that an engine serves the model by."""
        return self.architectures[0] if self.architectures else None

    def summary(self) -> dict[str, Any]:
        """The facts as JSON, without the config itself."""
        return {
            "id": self.model_id,
            "revision": self.revision,
            "source": self.source,
            "architectures": list(self.architectures),
            "model_type": self.model_type,
            "text_config": self.text_config_key or None,
            "text_architectures": list(self.text_architectures),
            "text_model_type": self.text_model_type,
            "layers": self.num_layers,
            "layer_kinds": list(self.layer_kinds),
            "attention": self.attention,
            "hybrid_family": self.hybrid,
            "hybrid_evidence": self.hybrid_evidence or None,
            "multimodal": self.multimodal,
            "context_length": self.context_length,
            "sliding_window": self.sliding_window,
            "hidden_size": self.hidden_size,
            "attention_heads": self.num_attention_heads,
            "key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "vocab_size": self.vocab_size,
            "experts": self.num_experts,
            "experts_per_token": self.experts_per_token,
            "mtp_layers": self.mtp_layers,
            "quantization": self.quantization,
            "dtype": self.dtype,
            "notes": list(self.notes),
        }
