"""Weights of transformers' classes under the names and in the layouts of the captured models."""

from __future__ import annotations

import torch
from torch import Tensor

from api_tests.capture.families.served import Weights


def as_they_are(weights: Weights) -> Weights:
    return weights


def zero_centred(weights: Weights) -> Weights:
    """Norms that multiply by one plus their weight, but for the gated one."""
    for name in weights:
        if name.endswith(("_norm.weight", "norm.weight")) and not name.endswith("mixers.0.norm.weight"):
            weights[name] = weights[name] + 1
    return weights


def by_key_head(*parts: Tensor) -> Tensor:
    """Rows of each part for the first of two key heads, then for the second."""
    out: Tensor = torch.cat([half for i in (0, 1) for half in (part.chunk(2)[i] for part in parts)])
    return out


def qwen3_5(weights: Weights) -> Weights:
    """Its delta net has the projections apart; here each of the two key heads' rows lie together."""
    weights = zero_centred(weights)
    for name in [n for n in weights if n.endswith("in_proj_qkv.weight")]:
        stem = name.removesuffix("in_proj_qkv.weight")
        qkv, z, b, a = (weights.pop(f"{stem}in_proj_{part}.weight") for part in ("qkv", "z", "b", "a"))
        query, key, value = torch.split(qkv, [32, 32, 64])
        weights[f"{stem}in_proj_qkvz.weight"] = by_key_head(query, key, value, z)
        weights[f"{stem}in_proj_ba.weight"] = by_key_head(b, a)
    return weights


def gpt_oss(weights: Weights) -> Weights:
    """Its experts are laid out as inputs by outputs, gate and up in turns."""
    for name in list(weights):
        if name.endswith("experts.up_proj"):
            value = weights[name].transpose(1, 2)
            weights[name] = torch.cat([value[:, 0::2], value[:, 1::2]], dim=1)
        elif name.endswith("experts.gate_up_proj_bias"):
            value = weights.pop(name)
            weights[name.replace("gate_up_proj_bias", "up_bias")] = torch.cat([value[:, 0::2], value[:, 1::2]], dim=1)
        elif name.endswith("experts.down_proj"):
            weights[name] = weights[name].transpose(1, 2)
        elif name.endswith("experts.down_proj_bias"):
            weights[name.replace("down_proj_bias", "down_bias")] = weights.pop(name)
    return weights


def granite(weights: Weights) -> Weights:
    """Its shared feed-forward has gate and up in one."""
    dense = not any(".experts." in name for name in weights)
    for name in [n for n in weights if ".shared_mlp." in n]:
        value, layer = weights.pop(name), name.split(".shared_mlp.")[0]
        stem = f"{layer}.mlp." if dense else f"{layer}.mlp.shared."
        if name.endswith("input_linear.weight"):
            weights[f"{stem}gate_proj.weight"], weights[f"{stem}up_proj.weight"] = value.chunk(2)
        else:
            weights[f"{stem}down_proj.weight"] = value
    return weights


def lfm2(weights: Weights) -> Weights:
    """Its feed-forwards name their parts w1, w3, w2, its attention's output out_proj."""
    parts = {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}
    out: Weights = {}
    attention = {name.rsplit("q_proj", 1)[0] for name in weights if ".q_proj." in name}
    for name, value in weights.items():
        stem, part, end = ("", *name.rsplit(".", 2))[-3:]
        if part in parts:
            name = f"{stem}.{parts[part]}.{end}"
        if part == "out_proj" and f"{stem}." in attention:
            name = f"{stem}.o_proj.{end}"
        out[name] = value
    return out


def minimax(weights: Weights) -> Weights:
    """Its decays over a block are tables made from the slopes."""
    return {name: value for name, value in weights.items() if not name.endswith("_decay")}


def nemotron(weights: Weights) -> Weights:
    """Its layers have one norm and one block, whatever that is."""
    out: Weights = {}
    for name, value in weights.items():
        if ".mixers.0." in name and (name.endswith(("mixers.0.up_proj.weight", "mixers.0.down_proj.weight"))):
            name = name.replace(".mixers.0.", ".mlp.")
        if any(part in name for part in (".mixers.0.experts.", ".mixers.0.gate.", ".mixers.0.shared_experts.")):
            name = name.replace(".mixers.0.", ".mlp.").replace("shared_experts", "shared")
            name = name.replace("gate.e_score_correction_bias", "gate.selection_bias")
        name = name.replace(".mixers.0.fc1_latent_proj.", ".mlp.into.")
        name = name.replace(".mixers.0.fc2_latent_proj.", ".mlp.back.")
        out[name] = value
    blocks = {n.split(".mlp.")[0] for n in out if ".mlp." in n}
    return {
        f"{n.removesuffix('.input_norm.weight')}.mlp_norm.weight"
        if n.removesuffix(".input_norm.weight") in blocks
        else n: v
        for n, v in out.items()
    }
