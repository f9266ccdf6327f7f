"""The model, its pools and its attention backend: what both graph runners run."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from engine.capture.attention.base import AttentionBackend
from engine.capture.attention.batch import ForwardBatch
from engine.capture.attention.full import FullAttentionBackend
from engine.capture.attention.hybrid import HybridLinearAttnBackend
from engine.capture.attention.linear import LinearAttentionBackend
from engine.capture.attention.pools import Pools, Shapes
from engine.capture.models.decoder import Decoder
from engine.capture.models.mixer import PagedMixer, RecurrentMixer
from engine.capture.options import Allocation
from engine.capture.shape import ModelShape


class ModelRunner:
    """Runs the scaled model eagerly. ``max_requests`` and ``max_context`` (tokens a request) size the pools."""

    def __init__(
        self,
        shape: ModelShape,
        *,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        allocation: Allocation,
        max_requests: int,
        max_context: int,
        page_size: int = 1,
        full_backend: type[FullAttentionBackend] = FullAttentionBackend,
        linear_backend: type[LinearAttentionBackend] = LinearAttentionBackend,
    ) -> None:
        self.shape = shape
        self.device = device
        self.dtype = dtype
        self.allocation: Allocation = allocation
        torch.manual_seed(seed)
        self.model = Decoder(shape).eval().requires_grad_(requires_grad=False).to(device=device, dtype=dtype)
        mixers = self.model.mixers()
        self.pools = Pools(
            max_requests=max_requests,
            max_context=max_context,
            kv=_by_layer((m.layer, m.token_shapes(dtype)) for m in mixers if isinstance(m, PagedMixer)),
            states=_by_layer((m.layer, m.state_shapes(dtype)) for m in mixers if isinstance(m, RecurrentMixer)),
            device=device,
            page_size=page_size,
        )
        recurrent = dict.fromkeys(m.label for m in mixers if isinstance(m, RecurrentMixer))
        full = full_backend(self.pools, allocation)
        self.attn_backend: AttentionBackend = full
        if recurrent:
            linear = linear_backend(self.pools, " and ".join(recurrent), allocation, device)
            self.attn_backend = HybridLinearAttnBackend(full, linear)

    @torch.no_grad()
    def forward_eager(self, batch: ForwardBatch) -> Tensor:
        """Without a graph: hidden states for prefill, logits for decode, as the graphs of the two phases give."""
        self.attn_backend.init_forward_metadata(batch)
        run = self.model.body if batch.mode == "extend" else self.model
        out: Tensor = run(batch.input_ids, batch.positions, self.attn_backend)
        return out


def _by_layer(kept: Iterable[tuple[int, Shapes]]) -> dict[int, Shapes]:
    """What the mixers of each layer keep, together."""
    layers: dict[int, Shapes] = {}
    for layer, shapes in kept:
        layers[layer] = {**layers.get(layer, {}), **shapes}
    return layers
