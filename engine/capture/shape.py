"""The scaled model that a capture builds: the model's layer pattern, with small dimensions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from engine.capture.style import FeedForward, Routing, Style
from engine.capture.styling import feed_forwards, style_of, text_config
from engine.models.facts import LayerKind, LinearShape, ModelFacts

SCALING_RULE = (
    "Layer kinds, what follows each mixer, grouped-query ratio, convolution taps, gating, routing and multipliers are "
    "kept; hidden size 64, vocabulary 256, attention head dimension at most 16, at most 2 key-value heads with at "
    "most 4 query heads each, latent ranks at most 32 with 8 rotated dimensions, at most 2 key heads and groups with "
    "at most 2 value heads each in recurrent mixers, their head and state dimensions at most 16, at most 4 experts in "
    "2 groups, feed-forwards at most 128 wide, sliding windows and attention chunks at most 8 tokens; where a capture "
    "asks for device cuda and gives memory_mib, all these bounds times the largest power of two with which weights, "
    "pools and one layer's gathered context take at most half of it, never beyond the model's own dimensions; of the "
    "layers, the first of each kind with each feed-forward and then the earliest others, in the model's order, up to "
    "the number of layers (by default 4, or one a kind if there are more kinds). Each layer is in the parametrisation "
    "of the model's own class, as far as captures know that class and the config gives its values; the delta attention "
    "of Kimi-K3 and Ling 3 is Kimi-Linear's, the routers of ZAYA and Inkling are plain ones. Weights are random, from "
    "the stated seed."
)

HIDDEN_SIZE = 64
VOCAB_SIZE = 256
DEFAULT_LAYERS = 4
WHOLE = 1 << 20
"""A width at which no bound is reached: the model's own dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A scaled model, by :data:`SCALING_RULE`. Heads, channels and dimensions are counts; windows are in tokens.

    ``expert_hidden``: channels of the latent space that experts work in, 0 where they work in the model's.
    ``q_lora_rank``, ``kv_lora_rank`` and ``rope_dim`` are latent attention's; a rank of 0: that projection is whole.
    """

    architecture: str | None
    family: str
    layer_kinds: tuple[LayerKind, ...]
    hidden_size: int = HIDDEN_SIZE
    intermediate_size: int = 2 * HIDDEN_SIZE
    expert_size: int = 2 * HIDDEN_SIZE
    expert_hidden: int = 0
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
    feed_forward: tuple[FeedForward, ...] = ()
    style: Style = field(default_factory=Style)

    def feed_forward_of(self, layer: int) -> FeedForward:
        """What follows the mixer of that layer; a shape that does not say has experts everywhere, if it has any."""
        if self.feed_forward:
            return self.feed_forward[layer]
        return "experts" if self.num_experts and self.layer_kinds[layer] != "mlp" else "dense"

    def sorts(self) -> tuple[str, ...]:
        """Each layer's kind, with what follows its mixer where that is not plain: ``kda``, ``attention, experts``."""
        after = (self.feed_forward_of(i) for i in range(len(self.layer_kinds)))
        bare = ("mlp", "moe")
        return tuple(
            kind if kind in bare or then == "dense" else f"{kind}, {'experts' if then == 'experts' else 'alone'}"
            for kind, then in zip(self.layer_kinds, after, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        out = asdict(self)
        out["layer_kinds"] = list(self.layer_kinds)
        out["feed_forward"] = list(self.feed_forward)
        return out

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ModelShape:
        fields = dict(value)
        fields["layer_kinds"] = tuple(fields["layer_kinds"])
        fields["feed_forward"] = tuple(fields["feed_forward"])
        fields["style"] = Style.from_dict(fields["style"])
        return cls(**fields)


def scaled_shape(facts: ModelFacts, layers: int | None = None, *, width: int = 1) -> ModelShape:
    """The model scaled down by :data:`SCALING_RULE`; ``layers`` overrides how many layers it has, ``width`` is the
    factor of every bound."""
    kinds: tuple[LayerKind, ...] = facts.layer_kinds or ("attention",)
    after = feed_forwards(facts) or ("experts" if facts.num_experts else "dense",)
    pairs = tuple(zip(kinds, after, strict=True))
    count = layers if layers is not None else max(min(DEFAULT_LAYERS, len(kinds)), len(set(pairs)))
    picked = chosen_layers(pairs, count)
    kv_heads, ratio = _grouped(facts.num_key_value_heads, facts.num_attention_heads, most=2, most_ratio=4, width=width)
    linear = facts.linear or LinearShape()
    if facts.hybrid == "rwkv" and linear.num_key_heads is None and linear.key_head_dim and facts.hidden_size:
        linear = replace(linear, num_key_heads=facts.hidden_size // linear.key_head_dim)
    key_heads, value_ratio = _grouped(linear.num_key_heads, linear.num_value_heads, most=2, most_ratio=2, width=width)
    hidden = _at_most(facts.hidden_size, HIDDEN_SIZE, width)
    experts = min(facts.num_experts or 0, 4 * width)
    text = text_config(facts)
    style = style_of(facts)
    return ModelShape(
        architecture=facts.architecture,
        family=facts.hybrid,
        layer_kinds=tuple(kinds[i] for i in picked),
        feed_forward=tuple(after[i] for i in picked),
        hidden_size=hidden,
        intermediate_size=_at_most(facts.intermediate_size, 2 * HIDDEN_SIZE, width),
        expert_hidden=min(_number(text, "moe_latent_size") or _number(text, "routed_expert_hidden_size"), hidden // 2),
        expert_size=_at_most(_number(text, "moe_intermediate_size") or facts.intermediate_size, 2 * HIDDEN_SIZE, width),
        vocab_size=_at_most(facts.vocab_size, VOCAB_SIZE, width),
        num_heads=kv_heads * ratio,
        num_kv_heads=kv_heads,
        head_dim=_at_most(_number(text, "qk_nope_head_dim") or _head_dim(facts), 16, width),
        attention=facts.attention,
        num_experts=experts,
        experts_per_token=min(facts.experts_per_token or 1, 2 * width) if experts else 0,
        sliding_window=_at_most(facts.sliding_window, 8, width),
        attention_chunk=_at_most(_number(text, "attention_chunk_size"), 8, width),
        linear_key_heads=key_heads,
        linear_value_heads=key_heads * value_ratio,
        linear_key_dim=_at_most(linear.key_head_dim, 16, width),
        linear_value_dim=_at_most(linear.value_head_dim or _expanded(text), 16, width),
        linear_groups=math.gcd(min(linear.num_groups or 1, 2 * width), key_heads * value_ratio),
        state_size=_at_most(linear.state_size, 16, width),
        q_lora_rank=min(_number(text, "q_lora_rank"), 32 * width),
        kv_lora_rank=_at_most(_number(text, "kv_lora_rank"), 32, width),
        rope_dim=_at_most(_number(text, "qk_rope_head_dim"), 8, width),
        conv_kernel=max(2, min(linear.conv_kernel or 4, 8)),
        style=replace(style, routing=_fewer_groups(style.routing, experts)),
    )


def chosen_layers(layers: Sequence[Hashable], count: int) -> tuple[int, ...]:
    """The places of the first layer of each sort, then of the earliest others, up to ``count``, in order.

    >>> chosen_layers(("gdn", "gdn", "gdn", "attention", "gdn"), 3)
    (0, 1, 3)
    """
    firsts = [layers.index(sort) for sort in dict.fromkeys(layers)]
    others = [i for i in range(len(layers)) if i not in set(firsts)]
    return tuple(sorted((firsts + others)[: max(1, count)]))


def _fewer_groups(routing: Routing, experts: int) -> Routing:
    """Groups of at least two experts, in the same proportion of groups that can be chosen from."""
    groups = math.gcd(min(routing.groups, max(1, experts // 2)), max(1, experts))
    top = max(1, round(groups * routing.top_groups / max(1, routing.groups)))
    return replace(routing, groups=groups, top_groups=min(top, groups))


def _head_dim(facts: ModelFacts) -> int | None:
    if facts.head_dim or not facts.hidden_size or not facts.num_attention_heads:
        return facts.head_dim
    return facts.hidden_size // facts.num_attention_heads


def _expanded(text: Mapping[str, Any]) -> int:
    """Jet-Nemotron's value dimension, which it gives as a multiple of the key dimension."""
    mixers = text.get("efficient_attention_config")
    jet = mixers.get("jet") if isinstance(mixers, Mapping) else None
    return int(jet.get("head_dim", 0) * jet.get("expand_v", 0)) if isinstance(jet, Mapping) else 0


def _number(text: Mapping[str, Any], name: str) -> int:
    """A size out of the text config; 0 where it gives none."""
    value = text.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _at_most(value: int | None, bound: int, width: int) -> int:
    """``value`` within ``width`` times the bound; the bound itself where the model gives none."""
    return min(value, bound * width) if value else bound


def _grouped(groups: int | None, members: int | None, *, most: int, most_ratio: int, width: int) -> tuple[int, int]:
    groups = groups or members or most
    ratio = max(1, (members or groups) // groups)
    return min(groups, most * width), min(ratio, most_ratio * width)
