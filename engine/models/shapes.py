"""Sizes: attention heads, experts, recurrent state, context, from the names that families give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.models.facts import AttentionKind, HybridFamily, LayerKind, LinearShape
from engine.models.fields import Fields

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num")
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
INTERMEDIATE = ("intermediate_size", "ffn_hidden_size", "n_inner", "d_ff", "inter_dim")
CONTEXT = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len", "n_ctx",
           "model_max_length", "context_length")  # fmt: skip
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_router_topk", "top_k_experts",
         "n_activated_experts")  # fmt: skip
MTP = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers", "n_mtp_layers")

_MAMBA: Mapping[str, Sequence[str]] = {
    "num_value_heads": ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads"),
    "value_head_dim": ("mamba_head_dim", "mamba_d_head", "mamba_headdim"),
    "conv_kernel": ("conv_kernel", "mamba_d_conv", "conv_dimension"),
    "state_size": ("ssm_state_size", "mamba_d_state", "state_size"),
    "num_groups": ("n_groups", "mamba_n_groups", "mamba_ngroups", "mamba_num_groups"),
    "intermediate_size": ("mamba_d_ssm",),
    "chunk_size": ("chunk_size", "mamba_chunk_size"),
}
_DELTA: Mapping[str, Sequence[str]] = {
    "num_key_heads": ("linear_num_key_heads",),
    "num_value_heads": ("linear_num_value_heads",),
    "key_head_dim": ("linear_key_head_dim",),
    "value_head_dim": ("linear_value_head_dim",),
    "conv_kernel": ("linear_conv_kernel_dim",),
    "state_size": ("linear_key_head_dim",),
}
_CONV: Mapping[str, Sequence[str]] = {"conv_kernel": ("conv_L_cache", "sconv_kernel_size", "cca_time0")}
_KDA: Mapping[str, Sequence[str]] = {
    "num_key_heads": ("num_heads",),
    "num_value_heads": ("num_heads",),
    "key_head_dim": ("head_dim",),
    "value_head_dim": ("head_dim",),
    "conv_kernel": ("short_conv_kernel_size",),
    "state_size": ("head_dim",),
}
_JET: Mapping[str, Sequence[str]] = {**_KDA, "conv_kernel": ("conv_size",), "value_head_dim": ()}
_HEADS: Mapping[str, Sequence[str]] = {
    "num_key_heads": HEADS,
    "num_value_heads": HEADS,
    "key_head_dim": ("head_dim", "head_size"),
    "value_head_dim": ("head_dim", "head_size"),
    "conv_kernel": ("short_conv_kernel_size",),
    "state_size": ("head_dim", "head_size"),
}


def linear_shape(hybrid: HybridFamily, text: Fields) -> LinearShape | None:
    """The dimensions of the recurrent mixers; None for a model that has none."""
    if hybrid == "none":
        return None
    if hybrid in ("mamba", "mamba2"):
        return _shape(text, _MAMBA)
    if hybrid == "shortconv":
        return _shape(text, _CONV)
    if hybrid == "gdn":
        mixers = text.object("efficient_attention_config")
        jet = mixers.object("jet") if mixers else None
        return _shape(jet, _JET) if jet else _shape(text, _DELTA)
    nested = text.object("linear_attn_config")
    return _shape(nested, _KDA) if nested else _shape(text, _HEADS)


def _shape(fields: Fields, names: Mapping[str, Sequence[str]]) -> LinearShape:
    return LinearShape(**{ours: fields.count(*theirs) for ours, theirs in names.items()})


def attention_of(text: Fields, kinds: Sequence[LayerKind]) -> AttentionKind:
    """The kind of softmax attention; ``none`` where no layer attends."""
    if not any("attention" in kind for kind in kinds):
        return "none" if kinds else _by_heads(text)
    return _by_heads(text)


def _by_heads(text: Fields) -> AttentionKind:
    if text.count("kv_lora_rank"):
        return "mla"
    heads, kv_heads = text.count(*HEADS), key_value_heads(text)
    if heads is None:
        return "mha" if kv_heads is None else "gqa"
    if kv_heads is None or kv_heads >= heads:
        return "mha"
    return "mqa" if kv_heads == 1 else "gqa"


def key_value_heads(text: Fields) -> int | None:
    """Key-value heads; Falcon and GPT-BigCode say "multi_query" instead, DBRX nests the number."""
    nested = text.object("attn_config") if isinstance(text.get("attn_config"), dict) else None
    if nested is not None and nested.has("kv_n_heads"):
        return nested.count("kv_n_heads")
    if text.get("multi_query") is True and text.get("new_decoder_architecture") is not True:
        return 1
    if text.get("multi_query_attention") is False:
        return None
    return text.count(*KV_HEADS)
