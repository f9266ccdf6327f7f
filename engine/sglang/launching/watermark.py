"""Watermarks in sampled text, and what they exclude."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid

_ALGORITHMS = (None, "NGRAM", "EAGLE", "EAGLE3")
_ON = "--enable-watermark"


def run(r: Resolution) -> None:
    """Keys and probabilities, then other features."""
    args = r.args
    if args.watermark_config is not None and not args.enable_watermark:
        raise invalid(f"--watermark-config requires {_ON}")
    if not args.enable_watermark:
        return
    if args.device != "cuda":
        raise invalid(f"{_ON} requires --device cuda, got {args.device!r}")
    _values(r)
    for excluded, message in (
        (args.enable_custom_logit_processor, f"{_ON} is incompatible with --enable-custom-logit-processor"),
        (
            args.sampling_backend is not None
            and args.sampling_backend not in r.release.tables["choices"]["BUILT_IN_SAMPLING_BACKENDS"],
            f"{_ON} does not support custom sampling backends; got --sampling-backend {args.sampling_backend!r}",
        ),
        (args.dllm_algorithm is not None, f"{_ON} is not supported with diffusion LLM"),
        (args.disaggregation_mode != "null", f"{_ON} is not supported with PD disaggregation"),
        (
            args.speculative_algorithm not in _ALGORITHMS,
            f"{_ON} supports speculative algorithms NGRAM, EAGLE, and EAGLE3, got {args.speculative_algorithm!r}",
        ),
        (
            args.pp_size > 1 and args.speculative_algorithm is not None,
            f"{_ON} is not supported with pipeline-parallel speculative decoding",
        ),
        (
            args.speculative_use_rejection_sampling,
            f"{_ON} is incompatible with --speculative-use-rejection-sampling",
        ),
        (environ.read(r, "SGLANG_RUST_SERVER"), f"{_ON} is not supported with SGLANG_RUST_SERVER"),
    ):
        if excluded:
            raise invalid(message)


def _values(r: Resolution) -> None:
    args = r.args
    window, mixing = args.watermark_context_window, args.watermark_mixing_probability
    if isinstance(window, bool) or not isinstance(window, int) or not 1 <= window <= 64:
        raise invalid("watermark context_window must be an integer from 1 to 64")
    if args.watermark_key_b is not None and args.watermark_key is None:
        raise invalid("watermark key_b requires a server key")
    if not 0 < mixing < 1:
        raise invalid("watermark mixing_probability must be strictly between 0 and 1")
    if args.watermark_key_b is None and mixing != 0.5:
        raise invalid("watermark mixing_probability requires key_b")
    if not 0 < args.watermark_max_probability <= 1:
        raise invalid("watermark max_probability must be greater than 0 and at most 1")
    if (args.watermark_default_enabled or args.watermark_enforce_all) and args.watermark_key is None:
        raise invalid("watermark default_enabled and enforce_all require a server key")
