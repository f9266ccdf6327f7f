"""The reference decoder: embedding, layers, norm; the head apart, because full prefill leaves it outside the graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.capture.attention.base import AttentionBackend
from engine.capture.models.families import mixings_for, of_variant
from engine.capture.models.feed_forward import feed_forward_for
from engine.capture.models.mixer import Mixer, Mixing, PagedMixer
from engine.capture.models.norm import RMSNorm
from engine.capture.shape import ModelShape


class DecoderLayer(nn.Module):
    """Mixers side by side, then MLP or experts, each after its norm and beside its residual.

    A layer may have only one of the two (Nemotron-H, Mamba). ``scales`` are each mixer's factors of input and output.
    """

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__()
        style, by = shape.style, shape.style.multipliers
        self.mixers = nn.ModuleList(mixings_for(shape, layer))
        self.mlp = of_variant(shape, layer, "feed_forward") or feed_forward_for(shape, layer)
        self.mlp_conv = of_variant(shape, layer, "after_feed_forward")
        self.input_norm = RMSNorm(shape.hidden_size, style.norm_eps) if len(self.mixers) else None
        self.mlp_norm = RMSNorm(shape.hidden_size, style.norm_eps) if self.mlp is not None else None
        self.scales = [
            (by.attention_in, by.attention_out) if isinstance(m, PagedMixer) else (by.ssm_in, by.ssm_out)
            for m in self.mixers
        ]
        self.residual, self.normed_residual = by.residual, style.normed_residual
        mixing = 0 if any(isinstance(m, PagedMixer) for m in self.mixers) else 1
        self.kept, self.added = (by.kept[mixing], by.kept[2]), (by.added[mixing], by.added[2])

    def forward(self, hidden: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        if self.input_norm is not None:
            normed = self.input_norm(hidden)
            parts = [
                mixer(normed * before, positions, backend) * after
                for mixer, (before, after) in zip(self.mixers, self.scales, strict=True)
            ]
            hidden = self._joined(0, hidden, normed, torch.stack(parts).sum(0) if len(parts) > 1 else parts[0])
        if self.mlp is not None and self.mlp_norm is not None:
            normed = self.mlp_norm(hidden)
            out = self.mlp(normed, positions, backend) if isinstance(self.mlp, Mixing) else self.mlp(normed)
            if self.mlp_conv is not None:
                out = self.mlp_conv(out, positions, backend)
            hidden = self._joined(1, hidden, normed, out)
        return hidden

    def _joined(self, block: int, stream: Tensor, normed: Tensor, out: Tensor) -> Tensor:
        if self.normed_residual:
            return normed * self.kept[block] + out * self.added[block]
        return stream + out * self.residual


class Decoder(nn.Module):
    """The scaled model."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.embedding_by = shape.style.multipliers.embedding
        self.logits_by = shape.style.multipliers.logits
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(shape, i) for i in range(len(shape.layer_kinds)))
        self.norm = RMSNorm(shape.hidden_size, shape.style.norm_eps)
        self.lm_head = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)

    def body(self, input_ids: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        """Hidden states ``[T, hidden]``: what the engine's full and breakable prefill graphs span."""
        hidden: Tensor = self.embed_tokens(input_ids) * self.embedding_by
        for layer in self.layers:
            hidden = layer(hidden, positions, backend)
        out: Tensor = self.norm(hidden)
        return out

    def forward(self, input_ids: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        """Logits ``[T, vocabulary]``: what the engine's decode graphs span."""
        out: Tensor = self.lm_head(self.body(input_ids, positions, backend)) * self.logits_by
        return out

    def mixers(self) -> list[Mixer]:
        """Every mixer, in the order of the layers."""
        return [module for module in self.modules() if isinstance(module, Mixer)]
