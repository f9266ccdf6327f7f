"""The scaled model that a capture builds: the model's layer pattern, with small dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.models.facts import LayerKind, ModelFacts

SCALING_RULE = (
    "Layer kinds, grouped-query ratio, convolution taps, gating and routing are kept; "
    "hidden size 64, vocabulary 256, attention head dimension at most 16, at most 2 key-value heads with at most 4 "
    "query heads each, latent ranks at most 32 with 8 rotated dimensions, at most 2 key heads and groups with at most "
    "2 value heads each in recurrent mixers, their head and state dimensions at most 16, at most 4 experts, sliding "
    "windows and attention chunks at most 8 tokens; of the layers, the first of each kind and then the earliest "
    "others, in the model's order, up to the number of layers (by default 4, or one a kind if there are more kinds). "
    "Each kind of layer is in the parametrisation of one published model (gdn: Qwen3-Next, kda: Kimi-Linear, "
    "lightning: MiniMax-01, shortconv: LFM2, attention beside mamba2: Falcon-H1). Weights are random, from the stated "
    "seed."
)

HIDDEN_SIZE = 64
VOCAB_SIZE = 256
DEFAULT_LAYERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A scaled model, by :data:`SCALING_RULE`. Heads, channels and dimensions are counts; windows are in tokens.

    ``q_lora_rank``, ``kv_lora_rank`` and ``rope_dim`` are latent attention's; a rank of 0: that projection is whole.
    """

    architecture: str | None
    family: str
    layer_kinds: tuple[LayerKind, ...]
    hidden_size: int = HIDDEN_SIZE
    intermediate_size: int = 2 * HIDDEN_SIZE
    vocab_size: int = VOCAB_SIZE
    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 16
    attention: str = "gqa"
    num_experts: int = 0
    experts_per_token: int = 0
    sliding_window: int = 8
    attention_chunk: int = 8
    linear_key_heads: int = 2
    linear_value_heads: int = 2
    linear_key_dim: int = 16
    linear_value_dim: int = 16
    linear_groups: int = 1
    state_size: int = 16
    conv_kernel: int = 4
    q_lora_rank: int = 0
    kv_lora_rank: int = 32
    rope_dim: int = 8

    def to_dict(self) -> dict[str, Any]:
        out = asdict(self)
        out["layer_kinds"] = list(self.layer_kinds)
        return out

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ModelShape:
        fields = dict(value)
        fields["layer_kinds"] = tuple(fields["layer_kinds"])
        return cls(**fields)


def scaled_shape(facts: ModelFacts, layers: int | None = None) -> ModelShape:
    """The model scaled down by :data:`SCALING_RULE`; ``layers`` overrides how many layers it has."""
    kinds = facts.layer_kinds or ("attention",)
    count = layers if layers is not None else max(min(DEFAULT_LAYERS, len(kinds)), len(set(kinds)))
    kv_heads, ratio = _grouped(facts.num_key_value_heads, facts.num_attention_heads, most=2, most_ratio=4)
    linear = facts.linear
    key_heads, value_ratio = _grouped(
        linear.num_key_heads if linear else None, linear.num_value_heads if linear else None, most=2, most_ratio=2
    )
    return ModelShape(
        architecture=facts.architecture,
        family=facts.hybrid,
        layer_kinds=chosen_layers(kinds, count),
        num_heads=kv_heads * ratio,
        num_kv_heads=kv_heads,
        head_dim=_at_most(facts.head_dim, 16),
        attention=facts.attention,
        num_experts=min(facts.num_experts or 0, 4),
        experts_per_token=min(facts.experts_per_token or 1, 2) if facts.num_experts else 0,
        sliding_window=_at_most(facts.sliding_window, 8),
        linear_key_heads=key_heads,
        linear_value_heads=key_heads * value_ratio,
        linear_key_dim=_at_most(linear.key_head_dim if linear else None, 16),
        linear_value_dim=_at_most(linear.value_head_dim if linear else None, 16),
        linear_groups=min((linear.num_groups if linear else None) or 1, 2),
        state_size=_at_most(linear.state_size if linear else None, 16),
        q_lora_rank=min(_latent(facts, "q_lora_rank"), 32),
        kv_lora_rank=_at_most(_latent(facts, "kv_lora_rank"), 32),
        rope_dim=_at_most(_latent(facts, "qk_rope_head_dim"), 8),
        conv_kernel=max(2, min((linear.conv_kernel if linear else None) or 4, 8)),
    )


def chosen_layers(kinds: tuple[LayerKind, ...], count: int) -> tuple[LayerKind, ...]:
    """The first layer of each kind, then the earliest others, up to ``count``, in the model's order.

    >>> chosen_layers(("gdn", "gdn", "gdn", "attention", "gdn"), 3)
    ('gdn', 'gdn', 'attention')
    """
    firsts = [kinds.index(kind) for kind in dict.fromkeys(kinds)]
    others = [i for i in range(len(kinds)) if i not in set(firsts)]
    picked = sorted((firsts + others)[: max(1, count)])
    return tuple(kinds[i] for i in picked)


def _latent(facts: ModelFacts, name: str) -> int:
    """A rank or dimension of latent attention out of the text config; 0 where it gives none."""
    text: Any = facts.config
    for key in filter(None, facts.text_config_key.split(".")):
        text = text.get(key) if isinstance(text, Mapping) else None
    value = text.get(name) if isinstance(text, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 0


def _at_most(value: int | None, most: int) -> int:
    return most if not value else min(value, most)


def _grouped(groups: int | None, members: int | None, *, most: int, most_ratio: int) -> tuple[int, int]:
    groups = groups or members or most
    ratio = max(1, (members or groups) // groups)
    return min(groups, most), min(ratio, most_ratio)
