"""Which quantization method the engine serves a checkpoint with, from its config.json and ``--quantization``.

Facts: ``sglang/srt/configs/model_config.py`` (``_parse_quant_hf_config``, ``_verify_quantization``) and the
``override_quantization_method`` of ``sglang/srt/layers/quantization/*`` (0.5.23).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.sglang.resolution import Refusal

_REQUANTIZATION = ("quark_mxfp4",)
_COMPATIBLE: Mapping[str, tuple[str, ...]] = {
    "modelopt_fp8": ("modelopt",),
    "modelopt_fp4": ("modelopt", "fp8"),
    "modelopt_mixed": ("modelopt",),
    "nvfp4_online": ("fp8", "modelopt_fp8"),
    "minimax_m3_nvfp4": ("mxfp8",),
    "petit_nvfp4": ("modelopt",),
    "w8a8_int8": ("compressed-tensors", "compressed_tensors"),
    "w8a8_fp8": ("compressed-tensors", "compressed_tensors"),
    "auto-round-int8": ("compressed-tensors", "compressed_tensors"),
}
Since = Callable[[int, int, int], bool]
MARLIN_SM = 80
"""The compute capability from which the engine converts AWQ and GPTQ checkpoints to Marlin kernels."""
_MARLIN_GROUPS = (-1, 32, 64, 128)


def parsed_config(
    raw: Mapping[str, Any] | None, compression: Mapping[str, Any] | None, *, since: Since, nemotron: bool
) -> dict[str, Any] | None:
    """The checkpoint's quantization configuration as the engine keeps it; None for an unquantized checkpoint.

    ``since`` says whether the release is that one or a newer one, ``nemotron`` whether the model is a Nemotron-H.
    """
    if raw is None:
        return dict(compression) if compression is not None else None
    config = dict(raw)
    if "quant_method" not in config or config["quant_method"] == "modelopt":
        found = _modelopt(config, since, nemotron)
        if found:
            config.update(found)
    return config


def _modelopt(config: Mapping[str, Any], since: Since, nemotron: bool) -> dict[str, Any] | None:
    inner = config.get("quantization")
    if isinstance(inner, Mapping) and since(0, 5, 20):
        config = inner
    algorithm = config.get("quant_algo")
    if algorithm == "MIXED_PRECISION":
        layers = config.get("quantized_layers") or {}
        nvfp4 = any(
            str(layer.get("quant_algo", "")).upper() in ("NVFP4", "W4A16_NVFP4")
            for layer in layers.values()
            if isinstance(layer, Mapping)
        )
        mixed = nvfp4 if since(0, 5, 15) else nemotron
        return {"quant_method": "modelopt_mixed" if mixed else "w4afp8", "quant_algo": algorithm}
    if algorithm and "FP4" in algorithm:
        return {"quant_method": "modelopt_fp4", "quant_algo": algorithm}
    if algorithm == "FP8" or (algorithm and "FP8" in algorithm and not since(0, 5, 18)):
        return {"quant_method": "modelopt_fp8", "quant_algo": algorithm}
    if algorithm == "MXFP8":
        return {
            "quant_method": "mxfp8",
            "quant_algo": algorithm,
            "activation_scheme": "dynamic",
            "weight_block_size": [1, config.get("group_size", 32)],
            "scale_fmt": "ue8m0",
        }
    return None


def _override(config: Mapping[str, Any], asked: str | None, sm: int, methods: tuple[str, ...]) -> str | None:
    """The first method of the engine's table that claims the checkpoint."""
    method = str(config.get("quant_method", ""))
    if asked != "nvfp4_online" and asked not in _REQUANTIZATION:
        if asked == "modelopt":
            algorithm = str(config.get("quant_algo", "")).upper()
            found = _canonical(algorithm)
            if found is not None:
                return found
        if method in ("modelopt_fp8", "modelopt_fp4"):
            return method
    if method == "modelopt_mixed":
        return method
    lower = method.lower()
    serialized = config.get("checkpoint_format") == "marlin" or config.get("is_marlin_format", False)
    if "marlin" in methods and asked in (None, "gptq", "marlin") and serialized:  # until 0.5.19
        return "marlin"
    if asked in (None, "marlin", "awq_marlin") and lower == "awq" and _awq_marlin(config, sm):
        return "awq_marlin"
    if asked in (None, "marlin", "gptq_marlin") and lower == "gptq" and _gptq_marlin(config, sm):
        return "gptq_marlin"
    if asked == "moe_wna16":
        gptq = lower == "gptq" and not config.get("desc_act") and config.get("bits") in (4, 8)
        if gptq or (lower == "awq" and config.get("bits") == 4):
            return "moe_wna16"
    if asked == "humming" and method != "mxfp4":
        return "humming"
    return None


def _canonical(algorithm: str) -> str | None:
    if algorithm == "MIXED_PRECISION":
        return "modelopt_mixed"
    if "FP4" in algorithm:
        return "modelopt_fp4"
    return "modelopt_fp8" if algorithm == "FP8" else None


def _awq_marlin(config: Mapping[str, Any], sm: int) -> bool:
    if any(config.get(key) is None for key in ("bits", "group_size", "zero_point")):
        return False
    return (
        config["bits"] in (4, 8)
        and sm >= MARLIN_SM
        and bool(config["zero_point"])
        and config["group_size"] in _MARLIN_GROUPS
    )


def _gptq_marlin(config: Mapping[str, Any], sm: int) -> bool:
    if config.get("checkpoint_format") == "marlin" or config.get("is_marlin_format"):
        return False
    if any(config.get(key) is None for key in ("bits", "group_size", "sym", "desc_act")):
        return False
    return (
        config["bits"] in (4, 8) and bool(config["sym"]) and sm >= MARLIN_SM and config["group_size"] in _MARLIN_GROUPS
    )


def verified(
    config: Mapping[str, Any] | None, asked: str | None, methods: tuple[str, ...], sm: int, since: Since
) -> str | None:
    """The method that the engine serves the checkpoint with; None without quantization.

    ``asked`` is ``--quantization``; ``methods`` the release's methods in its own order; ``sm`` the compute capability
    as one number, ``since`` whether the release is that one or a newer one.

    Raises:
        Refusal: an unknown method, or one that does not go with the checkpoint's own.
    """
    quantization = asked.lower() if asked is not None else None
    again = quantization in _REQUANTIZATION and since(0, 5, 17)
    if config is not None:
        method = str(config.get("quant_method", quantization or "")).lower()
        if not again:
            claimed = _override(config, quantization, sm, methods)
            if claimed:
                method = quantization = claimed
        if quantization is None:
            quantization = method
        elif quantization != method and method not in _COMPATIBLE.get(quantization, ()) and not again:
            raise Refusal(
                "ValueError",
                f"Quantization method specified in the model config ({method}) does not match the quantization "
                f"method specified in the `quantization` argument ({quantization}).",
            )
    if quantization is not None and quantization not in methods:
        raise Refusal("ValueError", f"Unknown quantization method: {quantization}. Must be one of {list(methods)}.")
    return quantization
