"""Hierarchical sparse attention (``--enable-hisparse``): the models, caches and kernels that it goes with.

Source: SGLang 0.5.23, ``arg_groups/hisparse_hook.py``; the engine runs it inside its last validations.
"""

from __future__ import annotations

from engine.sglang.resolution import Refusal, Resolution

_BY_DTYPE: dict[str, frozenset[str]] = {
    "bfloat16": frozenset({"flashmla_sparse"}),
    "fp8_e4m3": frozenset({"flashmla_kv", "flashinfer_sparse_mla"}),
}
_ANY = frozenset({"flashmla_sparse", "flashmla_kv", "flashinfer_sparse_mla"})
_SPARSE_MLA = frozenset({"flashinfer_sparse_mla"})
_DTYPES = ("bfloat16", "fp8_e4m3")


def run(r: Resolution) -> None:
    """Refuse what does not go with hierarchical sparse attention."""
    args, model = r.args, r.model
    if not args.enable_hisparse:
        return
    minimax = model.is_minimax_sparse and r.since(0, 5, 21)
    if not (model.is_deepseek_dsa or model.is_deepseek_v4 or minimax):
        others = ", DeepSeek V4, and MiniMax M3" if r.since(0, 5, 21) else " and DeepSeek V4"
        raise Refusal(
            "AssertionError",
            "--enable-hisparse is only supported for DSA (DeepSeek Sparse Attention) models (e.g., DeepSeek V3.2, "
            f"GLM-5){others} now. ",
        )
    if not args.disable_radix_cache:
        raise Refusal("AssertionError", "Hierarchical sparse attention currently requires --disable-radix-cache.")
    if r.since(0, 5, 22):
        _combinations(r)
    if minimax:
        return
    _kernels(r)


def _combinations(r: Resolution) -> None:
    args = r.args
    if args.enable_mixed_chunk:
        raise Refusal("ValueError", "--enable-hisparse does not support --enable-mixed-chunk yet.")
    algorithm = args.speculative_algorithm
    if algorithm is not None and algorithm.upper() != "NONE":
        if (args.speculative_eagle_topk or 1) != 1:
            raise Refusal(
                "ValueError",
                "The minimal HiSparse spec integration supports linear speculation only; use "
                "--speculative-eagle-topk 1.",
            )
        if args.speculative_adaptive:
            raise Refusal(
                "ValueError",
                "HiSparse speculative decoding uses statically sized swap state; --speculative-adaptive is not "
                "supported.",
            )


def _kernels(r: Resolution) -> None:
    dtype = r.args.kv_cache_dtype
    if dtype not in (*_DTYPES, "auto"):
        choices = " or ".join(f"--kv-cache-dtype={d}" for d in _DTYPES)
        raise Refusal(
            "ValueError",
            f"HiSparse requires one of {_DTYPES} KV cache dtypes, but got --kv-cache-dtype={dtype}. Please use "
            f"{choices}.",
        )
    allowed = _BY_DTYPE.get(dtype, _ANY) - (frozenset() if r.since(0, 5, 18) else _SPARSE_MLA)
    for side in ("prefill", "decode"):
        backend = getattr(r.args, f"dsa_{side}_backend")
        if backend is not None and backend not in allowed:
            default = "flashmla_kv" if dtype == "fp8_e4m3" else "flashmla_sparse"
            advice = (
                f"one of {sorted(allowed)}, or omit the option to let SGLang pick a backend for this platform."
                if r.since(0, 5, 18)
                else f"--dsa-{side}-backend={default} or omit it."
            )
            raise Refusal(
                "ValueError",
                f"HiSparse supports DSA {side} backend(s) {sorted(allowed)} on this platform with "
                f"--kv-cache-dtype={dtype}, but got --dsa-{side}-backend={backend}. Please use {advice}",
            )
