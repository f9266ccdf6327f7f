"""How a model's layers are parametrised, beside their dimensions: norms, routing, multipliers. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

FeedForward = Literal["dense", "experts", "none"]
"""What follows a layer's mixer, or is all of a layer that has none."""

Activation = Literal["swiglu", "clamped_swiglu", "relu2"]
"""``swiglu``: gated by SiLU. ``clamped_swiglu``: gpt-oss's, with biases. ``relu2``: squared ReLU without a gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """How tokens choose experts.

    ``normalise``: the chosen weights are divided by their sum. ``selection_bias``: added to the scores for the choice
    only (DeepSeek-V3). ``logit_bias``: the router is affine. ``groups`` and ``top_groups``: only experts of the best
    groups, by the sum of each group's two best, can be chosen. ``scale``: factor of the routed sum. ``shared``: an
    expert for every token, ``gated`` by a sigmoid of the token or not.
    """

    scoring: Literal["softmax", "sigmoid"] = "softmax"
    normalise: bool = True
    selection_bias: bool = False
    logit_bias: bool = False
    groups: int = 1
    top_groups: int = 1
    scale: float = 1.0
    shared: Literal["none", "plain", "gated"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Multipliers:
    """Constant factors, as the config gives them (Falcon-H1, Granite, MiniMax).

    ``attention``: factor of the attention scores, None for ``head_dim ** -0.5``. ``ssm``: of the parts z, x, B, C, dt
    of Mamba-2's projection. ``kept`` and ``added``: of the stream and of the block's output where the residual is the
    normed input, for full attention, linear attention and feed-forward.
    """

    embedding: float = 1.0
    logits: float = 1.0
    residual: float = 1.0
    attention: float | None = None
    attention_in: float = 1.0
    attention_out: float = 1.0
    key: float = 1.0
    ssm_in: float = 1.0
    ssm_out: float = 1.0
    ssm: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 1.0)
    mlp_gate: float = 1.0
    mlp_down: float = 1.0
    kept: tuple[float, ...] = (1.0, 1.0, 1.0)
    added: tuple[float, ...] = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The parametrisation of one published model.

    ``variant`` names kernels of that model's own (``jet``, ``bailing``, ``zaya``, ``inkling``, ``eagle``), "" the
    family's usual ones. ``rope``: dimensions turned as halves or as neighbouring pairs, or no rotary positions;
    ``rotary_fraction`` of each head is turned. ``head_norm``: queries and keys are normed per head.
    ``output_gate``: attention's output is gated by the query projection (Qwen3-Next). ``sinks``: a learned score a
    head that takes part of the softmax (gpt-oss). ``mamba2_norm``: the gated norm over all channels, over each
    group, or the gate alone. ``mamba_norms``: of time step, B and C. ``normed_residual``: the residual is the
    normed input (MiniMax). ``mixer_eps``: of the norms inside a mixer, where it is not ``norm_eps`` (Falcon-Mamba).
    """

    variant: str = ""
    activation: Activation = "swiglu"
    rope: Literal["halves", "pairs", "none"] = "halves"
    rope_theta: float = 10000.0
    rotary_fraction: float = 1.0
    head_norm: bool = False
    output_gate: bool = False
    sinks: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mamba2_norm: Literal["whole", "grouped", "none"] = "whole"
    mamba_norms: Literal["none", "weighted", "weightless"] = "none"
    normed_residual: bool = False
    norm_eps: float = 1e-6
    mixer_eps: float | None = None
    routing: Routing = field(default_factory=Routing)
    multipliers: Multipliers = field(default_factory=Multipliers)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Style:
        """The style that ``dataclasses.asdict`` wrote, also after JSON."""
        factors: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in value["multipliers"].items()}
        return cls(**{**value, "routing": Routing(**value["routing"]), "multipliers": Multipliers(**factors)})
