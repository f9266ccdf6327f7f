"""The reference decoder: embedding, layers, norm; the head apart, because full prefill leaves it outside the graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.capture.attention.base import AttentionBackend
from engine.capture.models.families import mixers_for
from engine.capture.models.mixer import Mixer
from engine.capture.models.norm import RMSNorm
from engine.capture.recorders.base import break_here
from engine.capture.shape import ModelShape


class Mlp(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(shape.hidden_size, 2 * shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        out: Tensor = self.down_proj(functional.silu(gate) * up)
        return out


class Moe(nn.Module):
    """Routed experts; every expert runs and the router's weights pick, so that no shape depends on the routing."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.top_k = shape.experts_per_token
        self.router = nn.Linear(shape.hidden_size, shape.num_experts, bias=False)
        self.experts = nn.ModuleList(Mlp(shape) for _ in range(shape.num_experts))

    def forward(self, x: Tensor) -> Tensor:
        logits = self.router(x).float()
        weights, chosen = torch.topk(torch.softmax(logits, dim=-1), self.top_k, dim=-1)
        share = torch.zeros_like(logits).scatter(-1, chosen, weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        each = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (each * share[..., None]).sum(1)


class DecoderLayer(nn.Module):
    """Mixers side by side, then MLP or experts, each after its norm and beside its residual."""

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__()
        self.mixers = nn.ModuleList(mixers_for(shape, layer))
        self.input_norm = RMSNorm(shape.hidden_size)
        self.mlp_norm = RMSNorm(shape.hidden_size)
        routed = shape.num_experts > 0 and shape.layer_kinds[layer] != "mlp"
        self.mlp: nn.Module = Moe(shape) if routed else Mlp(shape)

    def forward(self, hidden: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        normed = self.input_norm(hidden)
        for mixer in self.mixers:
            assert isinstance(mixer, Mixer)  # noqa: S101 - a module list forgets its element type
            hidden = hidden + _mixed(mixer, normed, positions, backend)
        out: Tensor = hidden + self.mlp(self.mlp_norm(hidden))
        return out


def _mixed(mixer: Mixer, hidden: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
    inputs = mixer.project(hidden, positions)
    return mixer.output(break_here(lambda: backend.forward(mixer, inputs)), inputs)


class Decoder(nn.Module):
    """The scaled model."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(shape, i) for i in range(len(shape.layer_kinds)))
        self.norm = RMSNorm(shape.hidden_size)
        self.lm_head = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)

    def body(self, input_ids: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        """Hidden states ``[T, hidden]``: what the engine's full and breakable prefill graphs span."""
        hidden: Tensor = self.embed_tokens(input_ids)
        for layer in self.layers:
            hidden = layer(hidden, positions, backend)
        out: Tensor = self.norm(hidden)
        return out

    def forward(self, input_ids: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        """Logits ``[T, vocabulary]``: what the engine's decode graphs span."""
        out: Tensor = self.lm_head(self.body(input_ids, positions, backend))
        return out

    def mixers(self) -> list[Mixer]:
        """Every mixer, in the order of the layers."""
        return [module for module in self.modules() if isinstance(module, Mixer)]
