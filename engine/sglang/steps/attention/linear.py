"""Linear-attention kernels: the decode, prefill and verify backends, and the buffered replay of recurrent state.

Source: SGLang 0.5.23, ``arg_groups/attention_hook.py`` (``handle_linear_attn_backend``).
"""

from __future__ import annotations

from typing import Any

from engine.sglang import environ
from engine.sglang.derived import as_given
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.attention import gdn_replay
from engine.sglang.steps.mamba import extra_buffer


def run(r: Resolution) -> None:
    """Fill in the decode backend on datacenter Blackwell; refuse kernels that cannot serve the state's type."""
    args, platform = r.args, platform_of(r.hardware)
    if (
        args.linear_attn_decode_backend is None
        and args.linear_attn_backend != "helion"
        and platform.is_sm100
        and args.mamba_ssm_dtype == "bfloat16"
    ):
        r.set("linear_attn_decode_backend", "flashinfer", "the fastest for bfloat16 state on SM100")
    decode = args.linear_attn_decode_backend or args.linear_attn_backend
    if decode == "flashkda":
        if args.linear_attn_decode_backend == "flashkda":
            raise Refusal(
                "ValueError",
                "--linear-attn-decode-backend flashkda is not supported: FlashKDA is prefill-only. Use "
                "--linear-attn-prefill-backend flashkda (decode stays on triton).",
            )
        r.set("linear_attn_decode_backend", "triton", "FlashKDA has no decode kernel")
        decode = "triton"
    blackwell = platform.major >= 10
    if decode == "flashinfer" and args.mamba_ssm_dtype != "bfloat16" and blackwell:
        raise _needs_bfloat16("decode", args)
    verify = args.linear_attn_verify_backend
    if verify is None and decode == "flashinfer":
        verify = "flashinfer"
    if verify == "flashinfer" and environ.read(r, "SGLANG_ENABLE_PP_SPEC") and r.model.uses_kda_attention:
        r.set("linear_attn_verify_backend", "triton", "FlashInfer's verify rows do not fit KDA under pipelined drafts")
        verify = "triton"
    if verify == "flashinfer" and args.mamba_ssm_dtype != "bfloat16" and blackwell:
        raise _needs_bfloat16("verify", args)
    if args.enable_linear_replayssm:
        _replay(r, decode)
    gdn_replay.run(r)
    if args.enable_linear_replayssm_spec:
        _replay_speculative(r, decode)


def _needs_bfloat16(side: str, args: Any) -> Refusal:
    return Refusal(
        "ValueError",
        f"--linear-attn-{side}-backend flashinfer on SM100+ requires --mamba-ssm-dtype bfloat16, "
        f"got {args.mamba_ssm_dtype!r}",
    )


def _replay(r: Resolution, decode: str | None) -> None:
    args = r.args
    if decode not in ("triton", "helion"):
        wanted = (
            "Triton, or Helion for KDA, as the linear-attn decode backend; got"
            if r.since(0, 5, 18)
            else "the Triton linear-attn decode backend, got"
        )
        raise Refusal(
            "ValueError", f"--enable-linear-replayssm requires {wanted} --linear-attn-decode-backend={decode!r}."
        )
    if extra_buffer(args):
        if not r.since(0, 5, 16):  # its refusal reads an argument that had been renamed
            raise Refusal("AttributeError", "'ServerArgs' object has no attribute 'mamba_scheduler_strategy'")
        name = "mamba_radix_cache_strategy"
        strategy = getattr(args, name) if r.since(0, 5, 19) else as_given(r, name)
        raise Refusal(
            "ValueError",
            "--enable-linear-replayssm requires --mamba-radix-cache-strategy no_buffer (the default); the extra_buffer "
            "ping-pong donation path is not yet supported (follow-up). Got "
            f"--mamba-radix-cache-strategy={strategy!r}.",
        )
    if args.disaggregation_mode != "null":
        raise Refusal(
            "ValueError",
            "--enable-linear-replayssm is not supported under PD disaggregation yet (follow-up). Got "
            f"--disaggregation-mode={args.disaggregation_mode!r}.",
        )
    if args.linear_replayssm_cache_len < 1:
        raise Refusal(
            "ValueError", f"--linear-replayssm-cache-len must be >= 1, got {args.linear_replayssm_cache_len}."
        )


def _replay_speculative(r: Resolution, decode: str | None) -> None:
    args = r.args
    if args.speculative_eagle_topk not in (None, 1):
        raise Refusal(
            "ValueError",
            "--enable-linear-replayssm-spec requires a linear draft chain (--speculative-eagle-topk in {None, 1}); the "
            "chunked verify kernel uses a strictly-lower causal mask and is invalid for EAGLE tree verify. Got "
            f"--speculative-eagle-topk={args.speculative_eagle_topk!r}.",
        )
    if decode not in ("triton", "flashinfer"):
        raise Refusal(
            "ValueError",
            "--enable-linear-replayssm-spec requires the triton or flashinfer linear-attn decode backend, got "
            f"--linear-attn-decode-backend={decode!r}.",
        )
    mode = ragged_verify_mode(r)
    algorithm = (args.speculative_algorithm or "").upper()
    verify = args.linear_attn_verify_backend
    if mode != "static" and (algorithm not in ("DSPARK", "DFLASH") or verify not in ("triton", "nv_cutedsl")):
        raise Refusal(
            "ValueError",
            f"--enable-linear-replayssm-spec with SGLANG_RAGGED_VERIFY_MODE={mode} requires the KDA fold-every-commit "
            "family (DSPARK/DFLASH) and a ring-writing verify kernel (--linear-attn-verify-backend triton or "
            f"nv_cutedsl); got algorithm={args.speculative_algorithm!r}, verify={verify!r}. Use "
            "SGLANG_RAGGED_VERIFY_MODE=static.",
        )
    if args.disaggregation_mode == "prefill":
        raise Refusal(
            "ValueError",
            "--enable-linear-replayssm-spec is not supported on a PD prefill server: the ring is spec-verify-only "
            "scratch and the prefill server never runs spec verify.",
        )
    if args.enable_linear_replayssm:
        raise Refusal(
            "ValueError",
            "--enable-linear-replayssm-spec and --enable-linear-replayssm are mutually exclusive: they share the ring "
            "storage but drive it with incompatible cursor protocols (per-decode-forward vs per-verify-commit "
            "advance).",
        )
    if args.mamba_ssm_dtype is None:
        r.set("mamba_ssm_dtype", "float32", "the cached replay projects checkpoints with compensation")


def ragged_verify_mode(r: Resolution) -> str:
    """How a target verifies drafts of unequal length.

    Raises:
        Refusal: the environment variable holds none of the engine's words.
    """
    value = str(environ.read(r, "SGLANG_RAGGED_VERIFY_MODE"))
    if value not in _RAGGED_MODES:
        words = ", ".join(repr(mode) for mode in _RAGGED_MODES)
        raise Refusal("ValueError", f"invalid SGLANG_RAGGED_VERIFY_MODE={value!r}; expected one of {words}")
    return value


_RAGGED_MODES = ("static", "cap-accept", "compact")
