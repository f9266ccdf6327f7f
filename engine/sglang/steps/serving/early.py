"""Checks before any model is looked at: one small function a hook, in the engine's order."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.refusals import invalid


def hidden_states_mode(r: Resolution) -> None:
    """``--return-hidden-states-mode``: last or full; given, it switches the feature on."""
    args = r.args
    mode = args.return_hidden_states_mode
    if mode not in (None, "last", "full"):
        raise invalid("return_hidden_states_mode must be one of: None, 'last', or 'full'.")
    if mode is not None:
        r.set("enable_return_hidden_states", True, "--return-hidden-states-mode is given")
    elif args.enable_return_hidden_states or args.enable_return_aux_hidden_states:
        r.set("return_hidden_states_mode", "full", "nothing given", layer="engine-default")


def media_domains(r: Resolution) -> None:
    """Host names from which media may be loaded."""
    args = r.args
    if args.media_url_max_file_size_mb < 0:
        raise invalid("media_url_max_file_size_mb must be non-negative")
    for domain in args.allowed_media_domains or ():
        name = domain.strip().rstrip(".")
        if not name:
            raise invalid("allowed media domains cannot be empty")
        if "://" in name or any(sign in name for sign in "/?#@"):
            raise invalid(f"Invalid allowed media domain {name!r}: provide a hostname only")
        if ":" in name and not _is_ipv6(name):
            raise invalid(f"Invalid allowed media domain {name!r}: ports are not supported")


def _is_ipv6(name: str) -> bool:
    import ipaddress  # rarely needed, and the command line must start fast

    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def decode_interval(r: Resolution) -> None:
    """``--prefill-decode-interval`` and its smallest batch."""
    args = r.args
    if args.prefill_decode_interval is not None and args.prefill_decode_interval < 0:
        raise invalid("--prefill-decode-interval must be non-negative.")
    if args.prefill_decode_interval_min_bs < 0:
        raise invalid("--prefill-decode-interval-min-bs must be non-negative.")


def response_store(r: Resolution) -> None:
    """No response store on prefill and decode servers."""
    if r.args.enable_response_store and r.args.disaggregation_mode != "null":
        raise invalid(
            "--enable-response-store is not supported with --disaggregation-mode=prefill or decode; response "
            "storage must "
            "remain disabled in PD mode."
        )


def sampling_mask(r: Resolution) -> None:
    """A retired variable, and a positive number of tokens."""
    if environ.is_set(r, "SGLANG_DISAGGREGATION_SAMPLING_MASK_MAX_TOKENS"):
        raise invalid(
            "SGLANG_DISAGGREGATION_SAMPLING_MASK_MAX_TOKENS is no longer supported. Unset it. To enable sampling masks "
            "for disaggregated serving, set SGLANG_ENABLE_DISAGG_SAMPLING_MASK=1 and use the same positive "
            "--sampling-mask-max-tokens value on both prefill and decode servers."
        )
    if r.args.sampling_mask_max_tokens <= 0:
        raise invalid(f"--sampling-mask-max-tokens must be positive (got {r.args.sampling_mask_max_tokens}).")


def hardware_runtime(r: Resolution) -> None:
    """MLX is for Apple silicon."""
    if environ.read(r, "SGLANG_USE_MLX"):
        raise Refusal(
            "RuntimeError",
            "SGLANG_USE_MLX requires stable Torch 2.13.x and MLX >= 0.32.0, but MLX is not installed; reinstall "
            "with the "
            "srt_mps extra",
        )


def multimodal(r: Resolution) -> None:
    """``--mm-process-config`` and the preprocessing cache."""
    args = r.args
    if args.mm_preprocess_cache_size_mb is not None and args.mm_preprocess_cache_size_mb < 0:
        raise invalid("mm_preprocess_cache_size_mb must be non-negative")
    config = args.mm_process_config
    if config is None:
        return
    if not isinstance(config, dict):
        raise Refusal("TypeError", f"mm_process_config must be a dict, but got {type(config)}")
    for key in ("image", "video", "audio"):
        if key in config and not isinstance(config[key], dict):
            raise Refusal("TypeError", f"mm_process_config['{key}'] must be a dict, but got {type(config[key])}")


def transcription(r: Resolution) -> None:
    """Buffer and sessions of speech recognition."""
    for option, value in (
        ("--asr-max-buffer-seconds", r.args.asr_max_buffer_seconds),
        ("--asr-max-concurrent-sessions", r.args.asr_max_concurrent_sessions),
    ):
        if value <= 0:
            raise invalid(f"{option} must be positive (got {value}).")
