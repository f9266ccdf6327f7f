"""The reference decoder with another implementation's weights, serving two requests over scattered slots."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from engine.capture.attention.batch import ForwardBatch
from engine.capture.models.decoder import DecoderLayer
from engine.capture.runners.model_runner import ModelRunner
from engine.capture.shape import WHOLE, ModelShape, scaled_shape
from engine.models.reading import facts_of

CONTEXT = 64
STEPS: Sequence[tuple[int, int]] = ((19, 5), (7, 0), (1, 1), (1, 1), (1, 1))
"""New tokens of the two requests in each pass: a prefill of both, a chunk of the first that goes on from its state,
decode steps of both."""

RENAMED: Sequence[tuple[str, str]] = (
    (r"^(model|backbone)\.(language_model\.)?", ""),
    (r"^embeddings\.", "embed_tokens."),
    (r"^(norm_f|final_layernorm|embedding_norm)\.", "norm."),
    (r"^(layers\.\d+)\.norm\.", r"\1.input_norm."),
    (r"\.(input_layernorm|operator_norm)\.", ".input_norm."),
    (r"\.(post_attention_layernorm|pre_ff_layernorm|pre_mlp_layernorm|ffn_norm)\.", ".mlp_norm."),
    (r"^(layers\.\d+)\.(feed_forward|block_sparse_moe|mlp)\.", r"\1.mlp."),
    (r"^(layers\.\d+)\.(self_attn|mamba|linear_attn|conv|mixer)\.", r"\1.mixers.0."),
    (r"\.mlp\.router\.", ".mlp.gate."),
    (r"\.experts\.gate_up_proj$", ".experts.up_proj"),
    (r"\.mlp\.(gate\.e_score_correction_bias|expert_bias)$", ".mlp.gate.selection_bias"),
    (r"\.mlp\.shared_expert_gate\.", ".mlp.shared_gate."),
    (r"\.mlp\.shared_experts?\.", ".mlp.shared."),
    (r"\.mixers\.0\.q_layernorm\.", ".mixers.0.q_norm."),
    (r"\.mixers\.0\.k_layernorm\.", ".mixers.0.k_norm."),
)
"""From transformers' names to the reference decoder's."""

Weights = dict[str, Tensor]


def renamed(weights: Mapping[str, Tensor], more: Sequence[tuple[str, str]] = ()) -> Weights:
    """The same weights under the reference decoder's names; ``more`` are rules that come first."""
    out: Weights = {}
    for name, value in weights.items():
        for pattern, by in (*more, *RENAMED):
            name = re.sub(pattern, by, name)
        out[name] = value
    return out


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """The shape of every layer, in the config's own dimensions."""
    facts = facts_of(config)
    return scaled_shape(facts, layers=len(facts.layer_kinds), width=WHOLE)


def randomise(model: nn.Module) -> None:
    """Weights at which every parameter matters, whatever a class left as it was; decays neither vanish nor explode."""
    with torch.no_grad():
        for name, parameter in (*model.named_parameters(), *model.named_buffers()):
            noise = torch.randn(parameter.shape)
            if name.endswith(("A_log", "dt_bias")):
                parameter.copy_(torch.rand(parameter.shape) * 1.5 - 0.5)
            elif name.endswith("bias") and parameter.is_floating_point():
                parameter.copy_(noise * 0.1)
            elif parameter.requires_grad:
                parameter.copy_(1 + noise * 0.05 if parameter.dim() < 2 else noise * parameter.shape[-1] ** -0.5)


class Served:
    """Whole passes of the reference decoder through its backends, in rows 2 and 1 of a pool for three requests."""

    def __init__(self, shape: ModelShape, weights: Mapping[str, Tensor] | None = None) -> None:
        self.runner = ModelRunner(
            shape,
            seed=1,
            device=torch.device("cpu"),
            dtype=torch.float32,
            allocation="decode-owned",
            max_requests=3,
            max_context=CONTEXT,
        )
        if weights is not None:
            self.runner.model.load_state_dict(weights, strict=True)
        pools = self.runner.pools
        pools.scramble(torch.Generator().manual_seed(3))
        # Whole pages in another order than the rows, the reserved ones left out.
        places = torch.tensor([1, 2, 0])[:, None] * CONTEXT + torch.arange(CONTEXT)
        pools.requests.table[1:] = places + getattr(pools.kv, "reserved", 1)
        pools.requests.state_index[1:] = torch.tensor([3, 1, 2])

    @torch.no_grad()
    def __call__(self, parts: Sequence[Tensor], rows: Sequence[int], seen: Sequence[int], *, decode: bool) -> Tensor:
        """Logits of the new tokens ``parts`` of the requests in ``rows``, that have ``seen`` tokens each."""
        positions = torch.cat([torch.arange(n, n + len(part)) for n, part in zip(seen, parts, strict=True)])
        lengths = torch.tensor([len(part) for part in parts])
        owners = torch.tensor(rows).repeat_interleave(lengths)
        batch = ForwardBatch(
            mode="decode" if decode else "extend",
            input_ids=torch.cat(list(parts)),
            positions=positions,
            out_cache_loc=self.runner.pools.requests.table[owners, positions],
            req_pool_indices=torch.tensor(rows),
            prefix_lens=torch.tensor(seen),
            query_start_loc=torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]),
            max_len=int(lengths.max()),
        )
        self.runner.attn_backend.init_forward_metadata(batch)
        return self.run(batch)

    def run(self, batch: ForwardBatch) -> Tensor:
        out: Tensor = self.runner.model(batch.input_ids, batch.positions, self.runner.attn_backend)
        return out


class ServedLayer(Served):
    """The mixing alone of one layer, of the tokens' embeddings."""

    def __init__(self, shape: ModelShape, depth: int = 0) -> None:
        super().__init__(shape)
        layer = self.runner.model.layers[depth]
        assert isinstance(layer, DecoderLayer)
        self.layer = layer
        (self.mixing,) = self.layer.mixers

    def embedded(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.runner.model.embed_tokens(tokens)
        return out

    def run(self, batch: ForwardBatch) -> Tensor:
        out: Tensor = self.mixing(self.embedded(batch.input_ids), batch.positions, self.runner.attn_backend)
        return out


def worst_difference(served: Served, reference: Callable[[Tensor], Tensor]) -> float:
    """The largest difference over :data:`STEPS`, relative to the reference's largest magnitude in that pass.

    ``reference`` takes all tokens of one request and gives the logits of each, from nothing: the plainest thing that
    an implementation can do.
    """
    generator = torch.Generator().manual_seed(17)
    told: list[list[int]] = [[], []]
    worst = 0.0
    for lengths in STEPS:
        live = [i for i in (0, 1) if lengths[i]]
        parts = [torch.randint(0, served.runner.shape.vocab_size, (lengths[i],), generator=generator) for i in live]
        decode = max(lengths) == 1
        actual = served(parts, [2 - i for i in live], [len(told[i]) for i in live], decode=decode)
        for i, part in zip(live, parts, strict=True):
            told[i] += part.tolist()
        with torch.no_grad():
            expected = torch.cat([reference(torch.tensor(told[i]))[-lengths[i] :] for i in live])
        worst = max(worst, float((actual - expected).abs().max() / expected.abs().max()))
    assert math.isfinite(worst)
    return worst
