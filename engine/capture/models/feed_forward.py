"""What follows a mixer: one feed-forward, or experts with a router; every shape is fixed by the number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape
from engine.capture.style import Routing


def _swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return functional.silu(gate) * up


def _clamped_swiglu(gate: Tensor, up: Tensor) -> Tensor:
    gate, up = gate.clamp(max=7.0), up.clamp(min=-7.0, max=7.0)
    return (up + 1) * gate * torch.sigmoid(1.702 * gate)


GATED: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {"swiglu": _swiglu, "clamped_swiglu": _clamped_swiglu}
"""Activations with a gate; ``relu2`` has none. The numbers of the clamped one are gpt-oss's."""


class Mlp(nn.Module):
    """One feed-forward of ``width`` inner channels."""

    def __init__(self, shape: ModelShape, width: int) -> None:
        super().__init__()
        self.act = GATED.get(shape.style.activation)
        self.gate_by, self.down_by = shape.style.multipliers.mlp_gate, shape.style.multipliers.mlp_down
        self.gate_proj = nn.Linear(shape.hidden_size, width, bias=False) if self.act else None
        self.up_proj = nn.Linear(shape.hidden_size, width, bias=False)
        self.down_proj = nn.Linear(width, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up_proj(x)
        if self.act is None or self.gate_proj is None:
            inner = functional.relu(up).square()
        else:
            inner = self.act(self.gate_proj(x) * self.gate_by, up)
        out: Tensor = self.down_proj(inner) * self.down_by
        return out


class Experts(nn.Module):
    """Every expert on every token: ``[T, experts, hidden]``."""

    def __init__(self, shape: ModelShape, hidden: int) -> None:
        super().__init__()
        self.act = GATED.get(shape.style.activation)
        experts, width = shape.num_experts, shape.expert_size
        biased = shape.style.activation == "clamped_swiglu"
        parts = 2 if self.act else 1
        self.up_proj = _weights(experts, parts * width, hidden)
        self.down_proj = _weights(experts, hidden, width)
        self.up_bias = nn.Parameter(torch.zeros(experts, parts * width)) if biased else None
        self.down_bias = nn.Parameter(torch.zeros(experts, hidden)) if biased else None

    def forward(self, x: Tensor) -> Tensor:
        up = torch.einsum("th,eih->tei", x, self.up_proj)
        up = up if self.up_bias is None else up + self.up_bias
        inner = functional.relu(up).square() if self.act is None else self.act(*up.chunk(2, dim=-1))
        out = torch.einsum("tei,ehi->teh", inner, self.down_proj)
        return out if self.down_bias is None else out + self.down_bias


class Router(nn.Module):
    """Each token's share of each expert, ``[T, experts]``: zero for those not chosen."""

    def __init__(self, hidden: int, experts: int, top_k: int, routing: Routing) -> None:
        super().__init__()
        self.routing, self.top_k = routing, top_k
        self.weight = nn.Parameter(torch.randn(experts, hidden) * hidden**-0.5)
        self.bias = nn.Parameter(torch.zeros(experts)) if routing.logit_bias else None
        self.selection_bias = nn.Parameter(torch.randn(experts) * 0.1) if routing.selection_bias else None

    def forward(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.float()
        logits = functional.linear(x.float(), self.weight.float(), bias)
        scores = logits.sigmoid() if self.routing.scoring == "sigmoid" else logits.softmax(dim=-1)
        wanted = scores if self.selection_bias is None else scores + self.selection_bias.float()
        chosen = torch.topk(self._of_the_best_groups(wanted), self.top_k, dim=-1).indices
        weights = scores.gather(-1, chosen)
        if self.routing.normalise:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return torch.zeros_like(scores).scatter(-1, chosen, weights * self.routing.scale).to(x.dtype)

    def _of_the_best_groups(self, wanted: Tensor) -> Tensor:
        groups = self.routing.groups
        if groups == 1:
            return wanted
        grouped = heads(wanted, groups)
        best = torch.topk(grouped.topk(min(2, grouped.shape[-1]), dim=-1).values.sum(-1), self.routing.top_groups)
        kept = torch.zeros_like(grouped[..., 0]).scatter(-1, best.indices, 1.0)
        return torch.where(kept[..., None] > 0, grouped, float("-inf")).flatten(-2)


class Moe(nn.Module):
    """Routed experts; every expert runs and the router's shares weigh, so that no shape depends on the routing."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        routing = shape.style.routing
        latent, inner = shape.expert_hidden > 0, shape.expert_hidden or shape.hidden_size
        self.gate = Router(shape.hidden_size, shape.num_experts, shape.experts_per_token, routing)
        self.into = nn.Linear(shape.hidden_size, inner, bias=False) if latent else nn.Identity()
        self.experts = Experts(shape, inner)
        self.back = nn.Linear(inner, shape.hidden_size, bias=False) if latent else nn.Identity()
        shared = routing.shared != "none"
        self.shared = Mlp(shape, shape.expert_size) if shared else None
        self.shared_gate = nn.Linear(shape.hidden_size, 1, bias=False) if routing.shared == "gated" else None

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.back((self.experts(self.into(x)) * self.gate(x)[..., None]).sum(1))
        if self.shared is None:
            return out
        every: Tensor = self.shared(x)
        return out + (every if self.shared_gate is None else self.shared_gate(x).sigmoid() * every)


def feed_forward_for(shape: ModelShape, layer: int) -> nn.Module | None:
    """The feed-forward of one layer; None where its block is a mixer alone."""
    after = shape.feed_forward_of(layer)
    if after == "none":
        return None
    return Moe(shape) if after == "experts" else Mlp(shape, shape.intermediate_size)


def _weights(experts: int, out: int, into: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(experts, out, into) * into**-0.5)
