"""Whole models agree with transformers' own: its config, read as any model's, its weights, prefill, chunk and decode.

The reference is transformers 5.19, the class that each case names, float32 on a CPU in eager attention, every pass
from nothing; here the same tokens go through pools and backends, state carried on. 1e-4 relative.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")
transformers = pytest.importorskip("transformers", reason="the reference implementations are not installed")

from torch import Tensor

from api_tests.capture.families.published_weights import (
    as_they_are,
    gpt_oss,
    granite,
    lfm2,
    minimax,
    nemotron,
    qwen3_5,
    zero_centred,
)
from api_tests.capture.families.served import (
    Served,
    Weights,
    randomise,
    renamed,
    shape_of,
    worst_difference,
)

RELEASE = "5.19"

SIZES: Mapping[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "vocab_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
EXPERTS: Mapping[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 128}
NO_SCALING: Mapping[str, Any] = {"rope_type": "default", "rope_theta": 10000.0}


@dataclass(frozen=True)
class Case:
    """One transformers class. ``sizes`` go over :data:`SIZES`; ``published`` is how the model's own config.json says it
    where transformers' class has other names; ``first`` and ``then`` bring the weights' names and layouts over."""

    model: str
    sizes: Mapping[str, Any] = field(default_factory=dict)
    first: Sequence[tuple[str, str]] = ()
    then: Callable[[Weights], Weights] = as_they_are
    module: str = ""
    published: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.model + "".join(f"-{k}" for k in ("q_lora_rank", "moe_latent_size") if self.sizes.get(k))


HYBRID = ["linear_attention", "full_attention"]
MAMBA2: Mapping[str, Any] = {
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "mamba_d_state": 16,
    "mamba_n_groups": 2,
    "mamba_d_conv": 4,
    "mamba_expand": 1,
    "mamba_chunk_size": 8,
}
DELTA: Mapping[str, Any] = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "num_experts": 4,
    "shared_expert_intermediate_size": 128,
    "num_hidden_layers": 2,
    "layer_types": HYBRID,
    **EXPERTS,
}
LATENT: Mapping[str, Any] = {
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "num_key_value_heads": 4,
    "n_routed_experts": 4,
    "n_group": 2,
    "topk_group": 1,
    "routed_scaling_factor": 2.5,
    "norm_topk_prob": True,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "num_hidden_layers": 2,
    "head_dim": 8,
    **EXPERTS,
}
NEMOTRON: Mapping[str, Any] = {
    "mamba_num_heads": 4,
    "mamba_head_dim": 16,
    "ssm_state_size": 16,
    "n_groups": 2,
    "conv_kernel": 4,
    "chunk_size": 8,
    "n_routed_experts": 4,
    "n_group": 1,
    "topk_group": 1,
    "moe_shared_expert_intermediate_size": 128,
    "n_shared_experts": 1,
    "time_step_min": 1e-6,
    **EXPERTS,
}
FALCON_H1: Mapping[str, Any] = {
    **MAMBA2,
    "num_hidden_layers": 2,
    "mamba_d_ssm": 64,
    "embedding_multiplier": 5.5,
    "lm_head_multiplier": 0.3,
    "attention_in_multiplier": 0.9,
    "attention_out_multiplier": 0.7,
    "key_multiplier": 0.4,
    "ssm_in_multiplier": 1.2,
    "ssm_out_multiplier": 0.6,
    "ssm_multipliers": [0.3, 0.5, 0.7, 1.1, 1.3],
    "mlp_multipliers": [0.8, 1.4],
}
GRANITE: Mapping[str, Any] = {
    **MAMBA2,
    "num_hidden_layers": 2,
    "layer_types": ["mamba", "attention"],
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.22,
    "attention_multiplier": 0.1,
    "logits_scaling": 6.0,
    "position_embedding_type": "nope",
    "shared_intermediate_size": 128,
}

CASES = [
    Case("LlamaForCausalLM", {"num_hidden_layers": 2}),
    Case("MistralForCausalLM", {"num_hidden_layers": 2, "sliding_window": 8}),
    Case("Qwen2ForCausalLM", {"num_hidden_layers": 2, "num_key_value_heads": 4}),
    Case("Qwen3MoeForCausalLM", {"num_hidden_layers": 2, "num_experts": 4, "norm_topk_prob": True, **EXPERTS}),
    Case(
        "Qwen2MoeForCausalLM",
        {"num_hidden_layers": 2, "num_experts": 4, "shared_expert_intermediate_size": 128, **EXPERTS},
    ),
    Case(
        "Glm4MoeForCausalLM",
        {
            "num_hidden_layers": 2,
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "n_shared_experts": 1,
            "routed_scaling_factor": 1.5,
            "use_qk_norm": True,
            **EXPERTS,
        },
    ),
    Case(
        "GraniteForCausalLM",
        {
            "num_hidden_layers": 2,
            "embedding_multiplier": 12.0,
            "residual_multiplier": 0.22,
            "attention_multiplier": 0.1,
            "logits_scaling": 6.0,
        },
    ),
    Case("MixtralForCausalLM", {"num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2}),
    Case(
        "GptOssForCausalLM",
        {
            "num_hidden_layers": 2,
            "num_local_experts": 4,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_parameters": NO_SCALING,
            "rope_scaling": None,
            "num_experts_per_tok": 2,
        },
        then=gpt_oss,
    ),
    Case("DeepseekV3ForCausalLM", {**LATENT, "q_lora_rank": None, "rope_parameters": NO_SCALING}),
    Case("DeepseekV3ForCausalLM", {**LATENT, "q_lora_rank": 24, "rope_parameters": NO_SCALING}),
    Case("Qwen3NextForCausalLM", DELTA, then=zero_centred),
    Case("Qwen3_5MoeForCausalLM", DELTA, then=qwen3_5, module="Qwen3_5MoeTextConfig"),
    Case(
        "KimiLinearForCausalLM",
        {
            **LATENT,
            "q_lora_rank": None,
            "layer_types": HYBRID,
            "linear_num_heads": 2,
            "linear_head_dim": 16,
            "linear_conv_kernel_dim": 4,
            "num_local_experts": 4,
        },
        published={
            "linear_attn_config": {
                "kda_layers": [1],
                "full_attn_layers": [2],
                "num_heads": 2,
                "head_dim": 16,
                "short_conv_kernel_size": 4,
            }
        },
    ),
    Case("MambaForCausalLM", {"num_hidden_layers": 2, "state_size": 16, "time_step_rank": 4, "conv_kernel": 4}),
    Case("FalconMambaForCausalLM", {"num_hidden_layers": 2, "state_size": 16, "time_step_rank": 4, "conv_kernel": 4}),
    Case(
        "Mamba2ForCausalLM",
        {
            "num_hidden_layers": 2,
            "num_heads": 4,
            "head_dim": 16,
            "expand": 1,
            "state_size": 16,
            "n_groups": 2,
            "chunk_size": 8,
        },
        published={"mamba_num_heads": 4, "mamba_head_dim": 16},
    ),
    Case(
        "NemotronHForCausalLM",
        {**NEMOTRON, "hybrid_override_pattern": "M-M*E"},
        then=nemotron,
        published={"hybrid_override_pattern": "M-M*E", "layer_types": None, "layers_block_type": None},
    ),
    Case(
        "NemotronHForCausalLM",
        {**NEMOTRON, "hybrid_override_pattern": "ME*", "moe_latent_size": 32},
        then=nemotron,
        published={"hybrid_override_pattern": "ME*", "layer_types": None, "layers_block_type": None},
    ),
    Case("FalconH1ForCausalLM", FALCON_H1, first=[(r"\.mamba\.", ".mixers.1.")]),
    Case("GraniteMoeHybridForCausalLM", {**GRANITE, "num_local_experts": 4, "num_experts_per_tok": 2}, then=granite),
    Case("GraniteMoeHybridForCausalLM", {**GRANITE, "num_local_experts": 0}, then=granite),
    Case("BambaForCausalLM", {**MAMBA2, "num_hidden_layers": 2, "attn_layer_indices": [1], "mamba_expand": 1}),
    Case(
        "JambaForCausalLM",
        {
            "num_hidden_layers": 4,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 0,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "mamba_d_state": 16,
            "mamba_dt_rank": 4,
        },
    ),
    Case(
        "Lfm2ForCausalLM",
        {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
        then=lfm2,
    ),
    Case(
        "Lfm2MoeForCausalLM",
        {
            "num_hidden_layers": 3,
            "layer_types": ["conv", "full_attention", "conv"],
            "num_experts": 4,
            "num_dense_layers": 1,
            **EXPERTS,
        },
        then=lfm2,
    ),
    Case(
        "MiniMaxForCausalLM",
        {
            "num_hidden_layers": 3,
            "layer_types": [*HYBRID, "linear_attention"],
            "num_key_value_heads": 4,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "block_size": 8,
        },
        then=minimax,
    ),
]


def as_published(config: dict[str, Any], published: Mapping[str, Any]) -> dict[str, Any]:
    """What the class writes, with the published spelling over it; None takes a key away."""
    return {key: value for key, value in {**config, **published}.items() if value is not None or key not in published}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_agrees_with_transformers(case: Case) -> None:
    assert transformers.__version__.startswith(RELEASE)
    torch.manual_seed(11)
    model_class = getattr(transformers, case.model)
    config_class = getattr(transformers, case.module) if case.module else model_class.config_class
    config = config_class(**{**SIZES, **case.sizes})
    config.architectures = [case.model]
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    randomise(model)

    def reference(tokens: Tensor) -> Tensor:
        logits: Tensor = model(tokens[None], use_cache=False).logits[0]
        return logits

    weights = case.then(renamed(model.state_dict(), case.first))
    served = Served(shape_of(as_published(json.loads(config.to_json_string(use_diff=False)), case.published)), weights)
    assert worst_difference(served, reference) < 1e-4
