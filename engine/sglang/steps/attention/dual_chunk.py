"""Dual-chunk attention (Qwen2.5-1M), until 0.5.19.

Source: SGLang 0.5.19, ``arg_groups/attention_hook.py`` and ``arg_groups/overrides.py``
(``_attention_backend_dual_chunk``).
"""

from __future__ import annotations

from engine.sglang.resolution import Refusal, Resolution

_BACKEND = "dual_chunk_flash_attn"


def run(r: Resolution) -> None:
    """A model with dual chunks takes their backend only; the backend takes neither mixed chunks nor a radix cache."""
    backend = r.args.attention_backend
    if r.model.hf.get("dual_chunk_attention_config") is not None and backend != _BACKEND:
        raise Refusal(
            "ValueError",
            f"Dual chunk attention is enabled, but attention backend is set to {backend}. Please set it to "
            f"{_BACKEND!r}.",
        )
    if backend != _BACKEND:
        return
    r.warn("WARNING: Mixed chunk and radix cache are disabled when using dual-chunk flash attention backend")
    r.set("enable_mixed_chunk", False, "dual-chunk attention")
    r.set("disable_radix_cache", True, "dual-chunk attention")
