"""Kimi K3: MLA kernels on datacenter Blackwell, verification of DSpark drafts, decode context parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.sglang import environ
from engine.sglang.derived import attention_backends
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution, Version
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.attention.linear import ragged_verify_mode
from engine.sglang.steps.model_overrides.base import Override, Values
from engine.sglang.versioned import FIRST, at

_VERIFYING = ("trtllm_mla", "cutedsl_mla")
_GAMMA = 7
_FABRIC = frozenset({"GB200", "GB300"})
_DECODES: tuple[tuple[Version, str], ...] = (
    ((0, 5, 23), "'cutedsl_mla' or 'aiter'"),
    ((0, 5, 20), "'cutedsl_mla', 'tokenspeed_mla' or 'aiter'"),
    (FIRST, "'cutedsl_mla' or 'tokenspeed_mla'"),
)
_TOKENSPEED_TOKENS = 8
_CUBINS = "SGLANG_TRTLLM_GEN_MOE_CUBIN_POOL"
_ARCHIVE = "trtllm_gen_moe_cubin_pool_20260617_v0613rc1"
_DOCKERFILE = (
    "https://github.com/sgl-project/sglang/blob/b701464720ca22aa1851d5dda7144e84a410f2c7/docker/kimi_k3/"
    "kimi_k3_cu13.Dockerfile#L116-L123"
)


def _context_parallel(r: Resolution) -> Values:
    args = r.args
    out: Values = {}
    if args.enable_symm_mem:
        r.warn("WARNING: Kimi-K3 DCP disables --enable-symm-mem due to decode CUDA graph correctness issues.")
        out["enable_symm_mem"] = False
    if args.speculative_algorithm == "DSPARK":
        mode = ragged_verify_mode(r)
        if mode != "static":
            raise Refusal(
                "ValueError",
                "Kimi-K3 DCP + DSPARK currently requires SGLANG_RAGGED_VERIFY_MODE=static; compact/cap-accept are not "
                f"validated under DCP (got {mode!r}).",
            )
        out["speculative_attention_mode"] = "decode"
    prefill, decode = attention_backends(args)
    if decode in ("cutedsl_mla", None):
        if not r.since(0, 5, 18):  # which asks for a FlashInfer that no release of it was, then
            raise Refusal(
                "RuntimeError",
                "Kimi-K3 DCP with decode_attention_backend='cutedsl_mla' requires enable_dcp in the signature of "
                "flashinfer.decode.trtllm_batch_decode_with_kv_cache_mla. Apply the FlashInfer DCP patch as shown in "
                f"{_DOCKERFILE}.",
            )
        out |= {"prefill_attention_backend": "trtllm_mla", "decode_attention_backend": "cutedsl_mla"}
    elif decode == "tokenspeed_mla" and not r.since(0, 5, 23):
        out |= {
            "prefill_attention_backend": "tokenspeed_mla",
            "decode_attention_backend": "tokenspeed_mla",
            "kv_cache_dtype": "fp8_e4m3",
        }
    elif decode == "aiter" and r.since(0, 5, 20):
        side = "triton" if prefill == "triton" else "aiter"
        out |= {"prefill_attention_backend": side, "decode_attention_backend": "aiter"}
    else:
        raise Refusal(
            "AssertionError",
            f"Decode attention backend for Kimi-K3 DCP must be {at(_DECODES, r.release.version)}, got {decode!r}.",
        )
    if not r.since(0, 5, 20):
        out["dcp_comm_backend"] = "fi_a2a" if r.hardware.name in _FABRIC else "a2a"
    if args.dcp_replicate_q_proj is None and (args.dcp_comm_backend in ("a2a", "fi_a2a") or not r.since(0, 5, 20)):
        out["dcp_replicate_q_proj"] = True
    return out


def _tokenspeed_verifies(r: Resolution) -> bool:
    args = r.args
    tokens = args.speculative_num_draft_tokens or (args.speculative_dspark_block_size or _GAMMA) + 1
    return not r.since(0, 5, 23) and args.kv_cache_dtype == "fp8_e4m3" and tokens <= _TOKENSPEED_TOKENS


def attention(r: Resolution) -> Values:
    """Attention backends, and where drafts are verified."""
    args, platform = r.args, platform_of(r.hardware)
    if args.dcp_size > 1:
        return _context_parallel(r)
    if platform.sm not in (100, 103):
        return {}
    free = unset(args)
    both = {"decode_attention_backend": "trtllm_mla", "prefill_attention_backend": "trtllm_mla"}
    if args.speculative_algorithm != "DSPARK":
        return both if free else {}
    out: Values = dict(both) if free else {}
    backend = "trtllm_mla" if free else attention_backends(args)[1]
    if backend in _VERIFYING or (backend == "tokenspeed_mla" and _tokenspeed_verifies(r)):
        out["speculative_attention_mode"] = "decode"
    return out


def _mxfp4_packed(config: Any) -> bool:
    if not isinstance(config, Mapping):
        return False
    groups = config.get("config_groups") or {}
    return any("mxfp4" in str(g.get("format", "")) for g in groups.values() if isinstance(g, Mapping))


def moe(r: Resolution) -> Values:
    """The MoE runner for packed MXFP4 experts; before 0.5.18 it needs a pool of kernels that the node holds."""
    runner, before = r.args.moe_runner_backend, not r.since(0, 5, 18)
    if runner != "auto" and not (before and runner == "flashinfer_mxfp4"):
        return {}
    inner = r.model.hf.get("text_config") or r.model.hf
    if platform_of(r.hardware).sm not in (100, 103, 107) or not _mxfp4_packed(inner.get("quantization_config")):
        return {}
    if before and environ.read(r, _CUBINS) is None:
        raise _no_cubins()
    return {"moe_runner_backend": "flashinfer_mxfp4"}


def _no_cubins() -> Refusal:
    folder = "/opt/trtllm_gen_moe_cubin_pool"
    return Refusal(
        "RuntimeError",
        "Kimi-K3 on Blackwell with moe_runner_backend='auto' or 'flashinfer_mxfp4' requires a valid "
        f"{_CUBINS}. Install it with:\n"
        f"wget https://github.com/sgl-project/whl/releases/download/trtllm_gen_moe_cubin_20260617/{_ARCHIVE}.zip\n"
        f"sudo mkdir -p {folder}\n"
        f"sudo unzip -q {_ARCHIVE}.zip -d {folder}\n"
        f"export {_CUBINS}={folder}/{_ARCHIVE}\n"
        "To use Marlin instead, set --moe-runner-backend marlin explicitly.",
    )


_ARCHITECTURES = ("KimiK3ForConditionalGeneration",)
OVERRIDES = (
    Override(family="Kimi K3", look=attention, architectures=_ARCHITECTURES, since=(0, 5, 17)),
    Override(family="Kimi K3", look=moe, architectures=_ARCHITECTURES, since=(0, 5, 17)),
)
