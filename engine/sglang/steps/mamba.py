"""The recurrent state of hybrid models: radix-cache strategy, kernels, checkpoints.

Source: SGLang 0.5.23, ``arg_groups/mamba_hook.py``, ``arg_groups/model_hook.py`` (``handle_mamba_radix_cache``) and
``arg_groups/overrides.py`` (``_mamba_radix_cache_resolution``).
"""

from __future__ import annotations

from typing import Any

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution

_FLA_CHUNK = 64


def extra_buffer(args: Any) -> bool:
    """Whether the state's radix cache keeps an extra buffer a request."""
    return args.disable_radix_cache is False and args.mamba_radix_cache_strategy in (
        "extra_buffer",
        "extra_buffer_lazy",
    )


def backend(r: Resolution) -> None:
    """Check the state's rounding, its kernels and its limits (``handle_mamba_backend``)."""
    args = r.args
    if args.mamba_cache_philox_rounds < 0:
        raise Refusal("ValueError", "--mamba-cache-philox-rounds must be non-negative.")
    states = args.mamba_max_states_per_path
    if states == 0 or states < -1:
        raise Refusal(
            "ValueError",
            f"--mamba-max-states-per-path must be -1 (unlimited) or a positive integer, got {states}.",
        )
    if not args.enable_mamba_cache_stochastic_rounding:
        return
    if args.mamba_ssm_dtype != "float16":
        raise Refusal(
            "ValueError",
            "Stochastic rounding for the Mamba SSM cache requires --mamba-ssm-dtype float16, got "
            f"{args.mamba_ssm_dtype!r}. Run with --mamba-ssm-dtype float16 or disable "
            "--enable-mamba-cache-stochastic-rounding.",
        )
    if args.mamba_backend == "triton" and not platform_of(r.hardware).is_sm100:
        raise Refusal(
            "ValueError",
            "Stochastic rounding for the Mamba SSM cache with --mamba-backend triton requires SM100 with CUDA >= 12.8 "
            "because it uses the cvt.rs.f16x2.f32 PTX instruction. On H100/SM90, run with --mamba-backend flashinfer "
            "--mamba-ssm-dtype float16, or disable --enable-mamba-cache-stochastic-rounding.",
        )


def int8_checkpoint(r: Resolution) -> None:
    """Refuse int8 checkpoints of the state where a cache does not know them (``handle_int8_mamba_checkpoint``)."""
    args = r.args
    if not args.enable_int8_mamba_checkpoint:
        return
    if args.enable_hierarchical_cache:
        raise Refusal(
            "ValueError",
            "--enable-int8-mamba-checkpoint is not supported together with --enable-hierarchical-cache: the "
            f"host-offload path {'' if r.since(0, 5, 18) else '(HiMambaRadixCache) '}is not int8-aware. Disable one of "
            "them.",
        )
    if args.radix_cache_backend is not None:
        raise Refusal(
            "ValueError",
            "--enable-int8-mamba-checkpoint only supports the built-in mamba radix cache; "
            f"--radix-cache-backend={args.radix_cache_backend!r} is not int8-aware. Omit --radix-cache-backend.",
        )
    if args.enable_lmcache and r.since(0, 5, 21):
        raise Refusal(
            "ValueError",
            "--enable-int8-mamba-checkpoint is not supported together with --enable-lmcache: LMCache is not "
            "int8-aware. Disable one of them.",
        )


def supports_extra_buffer(r: Resolution) -> bool:
    """Whether the model's state can live in an extra buffer with these kernels."""
    spec = r.model.linear_spec
    registered = spec is not None and spec["extra_buffer"] and r.since(0, 5, 21)
    if r.model.arch in r.model.lists.of("mamba_extra_buffer") or registered:
        return bool(r.args.linear_attn_backend == "triton")
    return False


def _cached_by_radix(r: Resolution) -> bool:
    model = r.model
    inside = model.arch in model.lists.of("mamba_radix_cache")
    if model.arch == "GraniteMoeHybridForCausalLM":
        inside = "mamba" in (model.hf.get("layer_types") or ())
    spec = model.linear_spec
    return inside or (spec is not None and bool(spec["radix"]))


def radix_cache(r: Resolution) -> None:
    """Resolve the radix-cache strategy of a state-carrying model and check it (``handle_mamba_radix_cache``)."""
    args = r.args
    if _cached_by_radix(r) and not args.disable_radix_cache:
        r.set("uses_mamba_radix_cache", True, "the model carries recurrent state", layer="engine-default")
        if args.mamba_radix_cache_strategy == "auto":
            paging = args.page_size is not None and args.page_size > 1
            if (not args.disable_overlap_schedule or paging) and supports_extra_buffer(r):
                r.set(
                    "mamba_radix_cache_strategy", "extra_buffer", "overlap or paging needs it", layer="engine-default"
                )
            else:
                why = "the model's state cannot be kept in an extra buffer"
                r.set("mamba_radix_cache_strategy", "no_buffer", why, layer="engine-default")
                r.set("disable_overlap_schedule", True, "the no_buffer strategy does not overlap")
    if not args.uses_mamba_radix_cache:
        if extra_buffer(args) and r.since(0, 5, 21):
            raise Refusal(
                "ValueError",
                f"--mamba-radix-cache-strategy {args.mamba_radix_cache_strategy} needs mamba state, got "
                f"{r.model.arch}.",
            )
        return
    if extra_buffer(args):
        _check_extra_buffer(r)
    else:
        _check_no_buffer(args)


def cache_chunk(r: Resolution) -> int:
    """The caching granularity of the state, in tokens (``mamba_cache_chunk_size``)."""
    chunk = r.model.hf.get("mamba_chunk_size", _FLA_CHUNK)
    page = r.args.page_size
    if max(chunk, page) % min(chunk, page) != 0:
        raise Refusal(
            "AssertionError",
            "For SSM models, either chunk_size or page_size must be divisible by the other, got "
            f"chunk_size={chunk!r}, page_size={page!r}",
        )
    return int(max(chunk, page))


def _check_extra_buffer(r: Resolution) -> None:
    args = r.args
    if not supports_extra_buffer(r):
        raise Refusal("AssertionError", f"extra_buffer is not supported for {r.model.arch}; use no_buffer.")
    lazy = args.mamba_radix_cache_strategy == "extra_buffer_lazy"
    if lazy and args.speculative_num_draft_tokens is not None and not r.since(0, 5, 17):
        raise Refusal("AssertionError", "extra_buffer_lazy unsupported with spec.")
    if lazy and args.disaggregation_mode != "null" and r.since(0, 5, 17):
        raise Refusal(
            "AssertionError",
            "extra_buffer_lazy unsupported under PD disaggregation; use --mamba-radix-cache-strategy extra_buffer.",
        )
    if not r.since(0, 5, 18) and args.mamba_radix_cache_strategy == "extra_buffer_lazy":
        algorithm = args.speculative_algorithm
        if (algorithm or "").upper() == "DFLASH":
            raise Refusal(
                "AssertionError",
                f"extra_buffer_lazy unsupported with {algorithm}; use --mamba-radix-cache-strategy extra_buffer.",
            )
    drafts = args.speculative_num_draft_tokens
    if drafts is not None and args.mamba_track_interval < drafts:
        raise Refusal("AssertionError", "")
    if args.page_size is not None:
        if args.mamba_track_interval % args.page_size != 0:
            raise Refusal("AssertionError", "")
        chunk = cache_chunk(r)
        prefill = args.chunked_prefill_size
        if prefill is not None and 0 < prefill < chunk:
            r.warn(
                f"WARNING: Mamba radix extra-buffer is enabled with chunked_prefill_size={prefill} smaller than "
                f"mamba_cache_chunk_size={chunk}. This can make mamba_track_mask false for unfinished chunked-prefill "
                "handoff and skip Mamba state checkpoints."
            )


def _check_no_buffer(args: Any) -> None:
    if args.page_size not in (1, None):
        raise Refusal("AssertionError", "no_buffer only supports page_size=1.")
    if not args.disable_overlap_schedule:
        raise Refusal(
            "AssertionError",
            "no_buffer do not support overlap schedule. Try to set disable_overlap_schedule=True.",
        )
    if args.attention_backend == "trtllm_mha":
        raise Refusal("AssertionError", "no_buffer do not support trtllm_mha attention backend.")
