"""Retired spellings that still work: each is translated to what replaces it."""

from __future__ import annotations

from engine.sglang.resolution import Refusal, Resolution


def run(r: Resolution) -> None:
    """Image processor, tool-call parsers, all-reduce fusion."""
    args = r.args
    if args.disable_fast_image_processor:
        if args.image_processor_backend not in ("auto", "pil"):
            raise Refusal(
                "ValueError",
                "--disable-fast-image-processor conflicts with "
                f"--image-processor-backend={args.image_processor_backend}.",
            )
        r.warn("WARNING: --disable-fast-image-processor is deprecated; use --image-processor-backend=pil instead.")
        r.set("image_processor_backend", "pil", "--disable-fast-image-processor means this")
    renamed = {"qwen25": "qwen", "glm45": "glm"}.get(args.tool_call_parser)
    if renamed is not None:
        r.warn(
            f"WARNING: The tool_call_parser '{args.tool_call_parser}' is deprecated. Please use '{renamed}' instead."
        )
        r.set("tool_call_parser", renamed, "the old name of the same parser")
    if args.enable_flashinfer_allreduce_fusion and args.flashinfer_allreduce_fusion_backend is None:
        r.warn(
            "WARNING: --enable-flashinfer-allreduce-fusion is deprecated. "
            "Please use --flashinfer-allreduce-fusion-backend=auto instead."
        )
        r.set("flashinfer_allreduce_fusion_backend", "auto", "--enable-flashinfer-allreduce-fusion means this")
