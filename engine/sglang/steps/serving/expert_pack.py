"""``--load-format expert_pack``: experts from one packed file, without CUDA graphs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.launch import PHASES
from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid

_KIMI_K3: dict[str, Any] = {
    "num_hidden_layers": 93,
    "num_experts": 896,
    "num_experts_per_token": 16,
    "first_k_dense_replace": 1,
    "routed_expert_hidden_size": 3584,
    "moe_intermediate_size": 3072,
    "num_shared_experts": 2,
    "hidden_act": "situ",
    "activation_situ_beta": 4.0,
    "activation_situ_linear_beta": 25.0,
}


def run(r: Resolution) -> None:
    """Every reason at once; then no graphs. The node's files are taken to be where the options say."""
    args = r.args
    if args.load_format != "expert_pack":
        return
    errors = [
        f"{label} parallelism ({option}) must be 1, got {size}"
        for label, option, size in (
            ("tensor", "--tp-size", args.tp_size),
            ("data", "--dp-size", args.dp_size),
            ("attention data", "--attn-dp-size", args.attn_dp_size),
            ("expert", "--ep-size", args.ep_size),
        )
        if size != 1 and (r.since(0, 5, 22) or label != "attention data")
    ]
    if args.enforce_shared_experts_fusion:
        errors.append("--enforce-shared-experts-fusion is incompatible with expert_pack")
    if args.enable_waterfill:
        errors.append("--enable-waterfill is incompatible with expert_pack")
    errors += _graphs(args)
    config = _loader_config(args, errors)
    if not (config.get("pack_path") or r.environment.get("SGLANG_EXPERT_PACK_PATH")):
        errors.append("pack_path is required in --model-loader-extra-config or SGLANG_EXPERT_PACK_PATH")
    kind = r.model.model_type
    errors += _model(r)
    if kind == "kimi_linear" and not config.get("manifest_path"):
        errors.append("Kimi-K3 requires manifest_path in loader config")
    if kind == "deepseek_v4":
        errors += [
            f"deepseek-v4-flash loader config requires {name}"
            for name in ("source_path", "source_sha256", "model_identity_sha256", "config_sha256")
            if not config.get(name)
        ]
    if errors:
        raise invalid("Invalid expert_pack configuration:\n" + "\n".join(f"- {error}" for error in errors))
    r.set("disable_cuda_graph", True, "expert_pack runs eagerly")
    r.set("disable_shared_experts_fusion", True, "expert_pack keeps shared experts separate")
    if kind == "deepseek_v4":
        environ.put(r, "SGLANG_OPT_FP8_WO_A_GEMM", False)


def _graphs(args: Any) -> list[str]:
    errors = []
    given = args.cuda_graph_config if isinstance(args.cuda_graph_config, Mapping) else {}
    for phase in PHASES:
        backend = (given.get(phase) or {}).get("backend", getattr(args, f"cuda_graph_backend_{phase}"))
        if backend not in (None, "disabled"):
            errors.append(f"expert_pack requires the {phase} CUDA graph backend to be disabled, got {backend!r}")
    return errors


def _loader_config(args: Any, errors: list[str]) -> dict[str, Any]:
    config = args.model_loader_extra_config or {}
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except json.JSONDecodeError as error:
            errors.append(f"--model-loader-extra-config must be valid JSON: {error}")
            return {}
    if not isinstance(config, dict):
        errors.append("--model-loader-extra-config must be a JSON object")
        return {}
    return config


def _model(r: Resolution) -> list[str]:
    kind = r.model.model_type
    if kind == "deepseek_v4":
        return []
    if kind != "kimi_linear":
        return [f"model_type must be 'deepseek_v4' or the text-only Kimi-K3 'kimi_linear' config, got {kind!r}"]
    return [
        f"Kimi-K3 {name} must be {expected!r}, got {r.model.hf.get(name)!r}"
        for name, expected in _KIMI_K3.items()
        if r.model.hf.get(name) != expected
    ]
