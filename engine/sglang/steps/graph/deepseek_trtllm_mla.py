"""DeepSeek-V3 on trtllm_mla: no prefill graph by default, because capture would force a slower kernel."""

from __future__ import annotations

from engine.sglang.derived import attention_backends
from engine.sglang.resolution import Resolution


def run(r: Resolution) -> None:
    """Switch the default prefill graph off for DeepSeek-V3 where prefill attention is trtllm_mla."""
    backend = r.graph["prefill"].backend
    if ("prefill", "backend") in r.locked or backend == "disabled":
        return
    if "DeepseekV3ForCausalLM" not in r.model.architectures or attention_backends(r.args)[0] != "trtllm_mla":
        return
    other = "breakable" if r.since(0, 5, 22) else "tc_piecewise"
    r.warn(
        f"WARNING: Disabling prefill CUDA graph ({backend}) by default for the DeepSeek-V3 arch on the trtllm_mla "
        "attention backend (a captured prefill graph forces a FlashAttention fallback that regresses prefill). Set the "
        f"prefill cuda graph backend explicitly (e.g. --cuda-graph-backend-prefill {other}) to override."
    )
    r.set_graph(
        "prefill",
        "backend",
        "disabled",
        "a captured prefill graph would force DeepSeek-V3 from trtllm_mla to a slower kernel",
    )
