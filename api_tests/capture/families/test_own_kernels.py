"""Kernels that are one model's own, against what its paper or its transformers class says.

transformers 5.19 has no Jet-Nemotron, no Ring and no RWKV-5: their references are written here from the papers, in
float64, one token at a time, and share no code with the kernels. ZAYA and Inkling: the classes of transformers that
each test names. All in float32 to 1e-4 relative, through a prefill, a chunk and decode steps beside another request.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

from torch import Tensor, nn

from api_tests.capture.families.served import ServedLayer, randomise, worst_difference
from engine.capture.attention.batch import ForwardBatch
from engine.capture.models.families.bailing import BailingLightningAttention
from engine.capture.models.families.eagle import ChannelMix, TimeMix
from engine.capture.models.families.inkling import RELATIVE_DIM, RELATIVE_EXTENT
from engine.capture.models.families.jet import JetBlock
from engine.capture.models.families.lightning import slopes
from engine.capture.shape import ModelShape
from engine.capture.style import Style


def layer_of(
    kind: Any, variant: str, *, depth: int = 0, style: dict[str, Any] | None = None, **sizes: Any
) -> ServedLayer:
    """The layer at ``depth`` of three of that kind, with random weights."""
    torch.manual_seed(11)
    shape = ModelShape(
        architecture=None,
        family=kind,
        layer_kinds=(kind,) * 3,
        feed_forward=("dense",) * 3,
        style=Style(variant=variant, **(style or {})),
        **sizes,
    )
    served = ServedLayer(shape, depth)
    randomise(served.mixing.requires_grad_())
    served.mixing.requires_grad_(requires_grad=False)
    return served


def test_jet_block_follows_the_paper() -> None:
    """Jet-Nemotron (arXiv 2508.15884), section 3.3: dynamic convolution on the values, then the gated delta rule

    S_t = a_t S_{t-1} (I - b_t k_t k_t^T) + b_t v_t k_t^T,  o_t = S_t q_t / sqrt(d)
    """
    served = layer_of("gdn", "jet", linear_key_heads=3, linear_key_dim=8, linear_value_dim=16)
    block = served.mixing
    assert isinstance(block, JetBlock)
    weights = {name: value.double() for name, value in block.state_dict().items()}

    def reference(tokens: Tensor) -> Tensor:
        hidden = served.embedded(tokens).double()
        parts = torch.split(hidden @ weights["qkvabz_proj.weight"].T, [24, 24, 48, 3, 3, 48], dim=-1)
        states = [torch.zeros(16, 8, dtype=torch.float64) for _ in range(3)]
        rows = []
        for t, x in enumerate(hidden):
            inner = weights["kernel_generator.w1.weight"] @ x
            inner = inner / (1 + (-inner).exp())
            taps = (weights["kernel_generator.w2.weight"] @ inner + weights["kernel_generator.w2.bias"]).view(48, 4)
            value = torch.zeros(48, dtype=torch.float64)
            for back in range(4):
                if t - back >= 0:
                    value += taps[:, 3 - back] * parts[2][t - back]
            value = value / (1 + (-value).exp())
            out = []
            for head in range(3):
                query, key = (part[t].view(3, 8)[head] for part in parts[:2])
                query, key = (row / (1 + (-row).exp()) for row in (query, key))
                query, key = query / query.norm(), key / key.norm()
                rate = weights["A_log"][head].exp() * (1 + (parts[3][t, head] + weights["dt_bias"][head]).exp()).log()
                a, b = (-rate).exp(), 1 / (1 + (-parts[4][t, head]).exp())
                forget = torch.eye(8, dtype=torch.float64) - b * torch.outer(key, key)
                states[head] = a * states[head] @ forget + b * torch.outer(value.view(3, 16)[head], key)
                read = states[head] @ query / 8**0.5
                gate = parts[5][t].view(3, 16)[head]
                normed = read / (read.pow(2).mean() + 1e-5).sqrt() * weights["o_norm.weight"]
                out.append(normed * gate / (1 + (-gate).exp()))
            rows.append(weights["o_proj.weight"] @ torch.cat(out))
        whole: Tensor = torch.stack(rows)
        return whole

    assert worst_difference(served, reference) < 1e-4


@pytest.mark.parametrize("depth", [0, 1])
def test_ring_lightning_attention_follows_the_paper(depth: int) -> None:
    """Lightning attention (arXiv 2401.04658; Ring-linear, arXiv 2510.19338): with ``l`` the slope of the head,

    o_t = sum over s <= t of exp(-l (t - s)) (q_t . k_s) v_s / sqrt(d)

    Queries and keys are normed and turned, the output is normed in four groups and gated; later layers decay slower.
    """
    served = layer_of(
        "lightning",
        "bailing",
        depth=depth,
        style={"rotary_fraction": 0.5, "rope_theta": 600.0},
        linear_key_heads=4,
        linear_key_dim=16,
    )
    mixing = served.mixing
    assert isinstance(mixing, BailingLightningAttention)
    weights = {name: value.double() for name, value in mixing.state_dict().items()}

    def normed(row: Tensor, weight: Tensor) -> Tensor:
        scaled: Tensor = row / (row.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * weight
        return scaled

    def turned(rows: Tensor) -> Tensor:
        angles = torch.outer(
            torch.arange(len(rows), dtype=torch.float64), 600.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
        )
        plane = torch.complex(rows[..., :4], rows[..., 4:8]) * torch.exp(1j * angles)
        out_rows: Tensor = torch.cat([plane.real, plane.imag, rows[..., 8:]], dim=-1)
        return out_rows

    def reference(tokens: Tensor) -> Tensor:
        hidden = served.embedded(tokens).double()
        count = len(hidden)
        query, key, value = (hidden @ weights["query_key_value.weight"].T).chunk(3, dim=-1)
        apart = torch.arange(count)[:, None] - torch.arange(count)
        out = []
        for head in range(4):
            q, k, v = (part[:, 16 * head : 16 * head + 16] for part in (query, key, value))
            q = turned(normed(q, weights["query_layernorm.weight"]))
            k = turned(normed(k, weights["key_layernorm.weight"]))
            slope = 2.0 ** (-2 * (head + 1)) * (1 - depth / 2 + 1e-5)
            decay = torch.where(apart >= 0, torch.exp(-slope * apart.double()), 0.0)
            out.append((q @ k.T * decay / 4) @ v)
        parts = torch.cat(out, dim=-1).view(count, 4, 16)
        grouped = normed(parts, weights["g_norm.weight"].view(4, 16)).flatten(1)
        gated: Tensor = grouped / (1 + (-(hidden @ weights["g_proj.weight"].T)).exp())
        out_rows: Tensor = gated @ weights["dense.weight"].T
        return out_rows

    assert worst_difference(served, reference) < 1e-4


def test_slopes_of_a_head_count_that_is_no_power_of_two() -> None:
    # Press et al. 2021, footnote on 12 heads: those of 8, then every other one of 16.
    assert slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert slopes(12)[8:].tolist() == pytest.approx([2.0**-0.5, 2.0**-1.5, 2.0**-2.5, 2.0**-3.5])


def test_eagle_follows_the_paper() -> None:
    """RWKV-5 (arXiv 2404.05892), equations 3 to 7: with ``w = exp(-exp(omega))``

    wkv_i = diag(u) k_i^T v_i + sum over j < i of diag(w)^(i-1-j) k_j^T v_j

    and the channel mixing of section 4.1.3, for the second half of the layer.
    """
    served = layer_of("rwkv", "eagle", linear_key_heads=3, linear_key_dim=16)
    time, channel = served.mixing, served.layer.mlp
    assert isinstance(time, TimeMix)
    assert isinstance(channel, ChannelMix)
    weights = {name: value.double() for name, value in time.state_dict().items()}

    def shifted(hidden: Tensor, shares: Tensor) -> list[Tensor]:
        before = torch.cat([torch.zeros_like(hidden[:1]), hidden[:-1]])
        return [hidden * (1 - share) + before * share for share in shares]

    def mixed_in_time(tokens: Tensor) -> Tensor:
        hidden = served.embedded(tokens).double()
        rows = [
            part @ weights[f"parts.{i}.weight"].T for i, part in enumerate(shifted(hidden, weights["shift.shares"]))
        ]
        out = torch.zeros(len(hidden), 48, dtype=torch.float64)
        for head in range(3):
            here = slice(16 * head, 16 * head + 16)
            r, k, v = (row[:, here] for row in rows[:3])
            decay = (-weights["decay"][head].exp()).exp()
            for i in range(len(hidden)):
                wkv = torch.outer(weights["bonus"][head] * k[i], v[i])
                for j in range(i):
                    wkv = wkv + torch.outer(decay ** (i - 1 - j) * k[j], v[j])
                read = r[i] @ wkv
                normed = (read - read.mean()) / (read.var(correction=0) + 1e-5).sqrt()
                out[i, here] = normed * weights["norm.weight"][here] + weights["norm.bias"][here]
        gate = rows[3] / (1 + (-rows[3]).exp())
        projected: Tensor = (out * gate) @ weights["out.weight"].T
        return projected

    def mixed_in_channels(tokens: Tensor) -> Tensor:
        own = {name: value.double() for name, value in channel.state_dict().items()}
        receptance, key = shifted(served.embedded(tokens).double(), own["shift.shares"])
        inner = (key @ own["key.weight"].T).clamp(min=0) ** 2
        gated: Tensor = (inner @ own["value.weight"].T) / (1 + (-(receptance @ own["receptance.weight"].T)).exp())
        return gated

    assert worst_difference(served, mixed_in_time) < 1e-4
    served.mixing = channel
    assert worst_difference(served, mixed_in_channels) < 1e-4


ATTENTION: dict[str, Any] = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 256,
}


def causal(count: int) -> Tensor:
    mask: Tensor = torch.full((count, count), -1e30).triu(1)[None, None]
    return mask


def test_zaya_attention_agrees_with_transformers() -> None:
    """transformers 5.19: ZayaAttention."""
    pytest.importorskip("transformers", reason="the reference implementations are not installed")
    from transformers.models.zaya.configuration_zaya import ZayaConfig
    from transformers.models.zaya.modeling_zaya import ZayaAttention, ZayaRotaryEmbedding

    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    config = ZayaConfig(**ATTENTION, num_hidden_layers=1, layer_types=["hybrid"], rope_parameters={"hybrid": rope})
    config._attn_implementation = "eager"
    served = layer_of("attention+shortconv", "zaya", style={"rotary_fraction": 0.5}, conv_kernel=2)
    theirs = ZayaAttention(config, 0).eval()
    randomise(theirs)
    rename = {"qkv_proj.": "projection.", "qk_norm.temp": "attention.temp", "o_proj.": "attention.o_proj."}
    served.mixing.load_state_dict(with_names(theirs, rename), strict=True)
    rotary = ZayaRotaryEmbedding(config)

    def reference(tokens: Tensor) -> Tensor:
        hidden = served.embedded(tokens)[None]
        places = torch.arange(len(tokens))[None]
        cos_sin = rotary(hidden, places, "hybrid")
        out: Tensor = theirs(hidden, {"causal": causal(len(tokens))}, None, cos_sin)[0][0]
        return out

    assert worst_difference(served, reference) < 1e-4


def test_inkling_layer_agrees_with_transformers() -> None:
    """transformers 5.19: InklingDecoderLayer, with its dense feed-forward."""
    pytest.importorskip("transformers", reason="the reference implementations are not installed")
    from transformers.models.inkling.configuration_inkling import InklingTextConfig
    from transformers.models.inkling.modeling_inkling import InklingDecoderLayer

    config = InklingTextConfig(
        **ATTENTION,
        intermediate_size=128,
        num_hidden_layers=1,
        layer_types=["hybrid"],
        mlp_layer_types=["dense"],
        d_rel=RELATIVE_DIM,
        rel_extent=RELATIVE_EXTENT,
        conv_kernel_size=4,
        log_scaling_n_floor=None,
        rms_norm_eps=1e-6,
    )
    config._attn_implementation = "eager"
    served = WholeLayer(layer_of("attention+shortconv", "inkling", conv_kernel=4))
    theirs = InklingDecoderLayer(config, 0).eval()
    randomise(theirs)
    rename = {
        "self_attn.q_norm": "mixers.0.attention.q_norm",
        "self_attn.k_norm": "mixers.0.attention.k_norm",
        "self_attn.o_proj": "mixers.0.attention.o_proj",
        "self_attn.rel_logits_proj.proj": "mixers.0.attention.bias",
        "self_attn.": "mixers.0.",
        "attn_sconv": "mixers.0.attn_sconv",
        "mlp_sconv": "mlp_conv",
        "input_layernorm": "input_norm",
        "post_attention_layernorm": "mlp_norm",
    }
    weights = with_names(theirs, rename)
    both = [weights.pop(f"mixers.0.{part}_sconv.conv1d.weight") for part in ("k", "v")]
    weights["mixers.0.kv_sconv.conv1d.weight"] = torch.cat(both)
    weights["mlp.down_proj.weight"] = weights["mlp.down_proj.weight"] * weights.pop("mlp.global_scale")
    served.layer.load_state_dict(weights, strict=True)

    def reference(tokens: Tensor) -> Tensor:
        out: Tensor = theirs(served.embedded(tokens)[None], attention_mask=causal(len(tokens)))[0]
        return out

    assert worst_difference(served, reference) < 1e-4


class WholeLayer(ServedLayer):
    """The whole layer, feed-forward and all."""

    def __init__(self, served: ServedLayer) -> None:
        self.__dict__.update(served.__dict__)

    def run(self, batch: ForwardBatch) -> Tensor:
        out: Tensor = self.layer(self.embedded(batch.input_ids), batch.positions, self.runner.attn_backend)
        return out


def with_names(layer: nn.Module, rename: dict[str, str]) -> dict[str, Tensor]:
    """A layer's weights; each name by the first of the beginnings that it has."""
    out = {}
    for name, value in layer.state_dict().items():
        before = next((start for start in rename if name.startswith(start)), "")
        out[rename.get(before, "") + name.removeprefix(before)] = value
    return out
