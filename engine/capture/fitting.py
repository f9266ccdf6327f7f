"""How wide the scaled model may be: the memory that a capture is given, against what the model takes."""

from __future__ import annotations

from engine.capture.options import CaptureOptions
from engine.capture.shape import ModelShape, scaled_shape
from engine.models.facts import ModelFacts

WIDEST = 1 << 10
COPIES = 4
"""The pools, and the copies of them that a comparison of one replay holds."""

SHARE = 0.5
"""Of the budget, what the model may take: graphs, activations and the library have the rest."""


def width_for(facts: ModelFacts, options: CaptureOptions, *, tokens: int, requests: int) -> int:
    """The factor of the scaled model's bounds, by :data:`engine.capture.shape.SCALING_RULE`.

    1 unless a GPU is asked for with a budget. ``tokens`` is the largest prefill, ``requests`` the most of one batch.
    """
    if options.device != "cuda" or options.memory_mib is None:
        return 1
    room = options.memory_mib * 2**20 * SHARE
    width, shape = 1, scaled_shape(facts, options.layers)
    while width < WIDEST:
        wider = scaled_shape(facts, options.layers, width=2 * width)
        if wider == shape or needed_bytes(wider, tokens=tokens, requests=requests) > room:
            return width
        width, shape = 2 * width, wider
    return width


def needed_bytes(shape: ModelShape, *, tokens: int, requests: int) -> int:
    """Bytes of weights, of the pools with their copies, and of one layer's gathered contexts.

    On a GPU numbers have 16 bits, those of models with experts 32 (:func:`engine.capture.setup.dtype_for`).
    """
    number = 4 if shape.num_experts else 2
    heads = shape.num_heads * shape.head_dim
    row = shape.kv_lora_rank + shape.rope_dim if shape.attention == "mla" else 2 * shape.num_kv_heads * shape.head_dim
    inner = max(heads, shape.linear_value_heads * shape.linear_value_dim, 2 * shape.hidden_size)
    state = max(
        shape.linear_value_heads * shape.linear_value_dim * max(shape.linear_key_dim, shape.state_size),
        2 * shape.hidden_size * shape.state_size,
    )
    weights, pools = 2 * shape.vocab_size * shape.hidden_size * number, 0
    for layer, kind in enumerate(shape.layer_kinds):
        weights += 6 * shape.hidden_size * inner * number
        if shape.feed_forward_of(layer) == "experts":
            weights += 3 * (shape.num_experts + 1) * shape.hidden_size * shape.expert_size * number
        else:
            weights += 3 * shape.hidden_size * shape.intermediate_size * number
        pools += requests * tokens * row * number if "attention" in kind else 0
        pools += requests * 2 * state * 4 if kind not in ("attention", "mlp", "moe") else 0
    gathered = tokens * tokens * (row * number + shape.num_heads * 8)
    experts = tokens * shape.num_experts * (2 * shape.expert_size + shape.hidden_size) * number
    return weights + COPIES * pools + gathered + experts
