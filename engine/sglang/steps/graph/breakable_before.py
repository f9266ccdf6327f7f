"""Which launches lost the breakable prefill graph before 0.5.17, while its rules were stricter.

Source: SGLang 0.5.16, ``server_args.py`` (``_disable_breakable_cudagraph_if_incompatible``); 0.5.14 knew the first rule
alone.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Resolution, Version
from engine.sglang.versioned import FIRST

Rule = tuple[str, Callable[[Resolution], bool], Version]
"""Name, whether it applies, and the first release that has it."""

UNTIL: Version = (0, 5, 16)


def _multimodal(r: Resolution) -> bool:
    return bool(r.model.is_multimodal) and not r.model.is_multimodal_breakable_cuda_graph_supported


_ALL: tuple[Rule, ...] = (
    ("MLA attention", lambda r: bool(r.model.use_mla), FIRST),
    ("DeepSeek-V4 (heavy capture-pool memory pressure)", lambda r: bool(r.model.is_deepseek_v4), (0, 5, 15)),
    ("context parallel (attn_cp_size > 1)", lambda r: bool(r.args.attn_cp_size > 1), (0, 5, 15)),
    ("decode context parallel (dcp_size > 1)", lambda r: bool(r.args.dcp_size > 1), (0, 5, 16)),
    ("LoRA", lambda r: bool(r.args.lora_paths) or bool(r.args.enable_lora), (0, 5, 15)),
    ("MoE A2A backend", lambda r: bool(r.args.moe_a2a_backend != "none"), (0, 5, 15)),
    ("DP attention", lambda r: attn_dp_enabled(r.args), (0, 5, 15)),
    ("multimodal model", _multimodal, (0, 5, 15)),
)


def rules(version: Version) -> tuple[tuple[str, Callable[[Resolution], bool]], ...]:
    """The rules of that release (0.5.16 or older), in the engine's order."""
    return tuple((name, applies) for name, applies, since in _ALL if since <= version)
