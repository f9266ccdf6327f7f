"""What the model can and cannot do, applied after the backends are chosen: embedding, multimodal chunks, HRM-Text.

Source: SGLang 0.5.23, ``arg_groups/model_hook.py`` (``handle_model_capability_adjustments``) and
``configs/embedding_model_spec.py``.
"""

from __future__ import annotations

from engine.launch import PHASES
from engine.sglang.derived import connector_type
from engine.sglang.ladders import prefill_sizes
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.kv import prefill_only
from engine.sglang.steps.models import deepseek_v4

_EMBEDDING = frozenset(
    {"BertModel", "CLIPModel", "Contriever", "LlamaEmbeddingModel", "MistralModel", "XLMRobertaModel"}
)
_CLASSIFIERS = frozenset(
    {
        "BertForSequenceClassification",
        "LlamaForSequenceClassification",
        "LlamaForSequenceClassificationWithNormal_Weights",
        "Qwen2ForSequenceClassification",
        "Qwen3ForSequenceClassification",
        "XLMRobertaForSequenceClassification",
    }
)
_FULL_BATCH_TOKENS = 16384


def run(r: Resolution) -> None:
    """Apply the model's own limits."""
    if connector_type(r.args.model_path) == "instance":
        return
    _hrm_text(r)
    if r.since(0, 5, 17):
        _embedding(r)
    model = r.model
    if model.is_multimodal and not model.is_multimodal_chunked_prefill_supported:
        r.set("chunked_prefill_size", -1, "the model's images do not split into chunks")
    if r.since(0, 5, 23):
        deepseek_v4.replay_budget(r)


def _hrm_text(r: Resolution) -> None:
    model = r.model
    hrm = model.model_type == "hrm_text" or "HrmTextForCausalLM" in model.architectures
    if not hrm or not model.hf.get("prefix_lm", True):
        return
    why = "HRM-Text attends to its prompt in both directions"
    backend = r.args.attention_backend
    if backend not in (None, "triton"):
        r.warn(
            f"WARNING: Overriding --attention-backend {backend!r} -> 'triton': only the Triton backend supports "
            "HRM-Text's bidirectional prefix attention."
        )
    for name, value in (
        ("attention_backend", "triton"),
        ("chunked_prefill_size", -1),
        ("disable_radix_cache", True),
        ("disable_cuda_graph", True),
    ):
        r.set(name, value, why)
    for phase in PHASES:
        r.set_graph(phase, "backend", "disabled", why)
    r.warn(
        "WARNING: HRM-Text (prefix_lm) detected: forcing --attention-backend triton, --chunked-prefill-size -1, "
        "--disable-radix-cache, and --disable-cuda-graph for correctness of the bidirectional prompt attention."
    )


def _embedding(r: Resolution) -> None:
    model = r.model
    names = set(model.architectures)
    gemma2 = "EmbeddingGemma2Model" in names and r.since(0, 5, 22)
    gemma = model.is_embedding_gemma and not gemma2
    native = not gemma and not gemma2 and not names & _CLASSIFIERS and bool(names & _EMBEDDING)
    if not (gemma2 or gemma or native):
        return
    why = "the architecture only embeds"
    if not r.args.is_embedding:
        r.set("is_embedding", True, why)
    if gemma2 or gemma:
        r.set("disable_radix_cache", True, "every token of the prompt attends to the others")
        r.set("chunked_prefill_size", -1, "every token of the prompt attends to the others")
    if gemma:
        _embedding_gemma(r)


def _embedding_gemma(r: Resolution) -> None:
    args, platform = r.args, platform_of(r.hardware)
    why = "EmbeddingGemma is one complete prefill"
    r.set("enable_tokenizer_batch_encode", True, why)
    requested = args.prefill_attention_backend or args.attention_backend
    if (platform.is_sm90 or platform.is_sm100) and requested in (None, "fa3", "fa4"):
        r.set("prefill_only_disable_kv_cache", True, "its single prefill neither writes nor reads the KV pool")
        prefill_only.arguments(r)
    r.set_graph("decode", "backend", "disabled", why)
    prefill = r.graph["prefill"]
    if prefill.backend == "disabled":
        return
    r.set_graph("prefill", "backend", "breakable", why)
    if ("prefill", "max_bs") in r.locked:
        return
    largest = max(prefill.max_bs or 0, r.model.context_len, _FULL_BATCH_TOKENS)
    r.set_graph("prefill", "max_bs", largest, "a full batch of embeddings is captured", layer="engine-default")
    if ("prefill", "bs") not in r.locked:
        ladder = r.release.ladders["prefill"]
        r.set_graph(
            "prefill", "bs", prefill_sizes(ladder, largest), "a full batch of embeddings", layer="engine-default"
        )
