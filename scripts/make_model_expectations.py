"""Ask one SGLang release what its ModelConfig makes of the test configurations, and write the answers as test data.

Run it with a Python environment in which that release of SGLang can be imported (see docs/releases.md)::

    python scripts/make_model_expectations.py 0.5.23

reads ``api_tests/sglang/models.json`` and writes ``api_tests/sglang/models-0.5.23.json``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

with contextlib.suppress(ImportError):  # lets the release be imported on a machine without a GPU, where provided
    import fake_gpu  # type: ignore[import-not-found] # noqa: F401

TESTS = Path(__file__).resolve().parent.parent / "api_tests" / "sglang"
READ = (
    "is_multimodal",
    "is_multimodal_breakable_cuda_graph_supported",
    "is_multimodal_chunked_prefill_supported",
    "is_piecewise_cuda_graph_disabled_model",
    "is_encoder_decoder",
    "is_generation",
    "is_embedding_gemma",
    "is_hybrid_swa",
    "is_fp4_experts",
    "context_len",
    "head_dim",
    "v_head_dim",
    "swa_head_dim",
    "has_asymmetric_kv",
    "has_attention_sinks",
    "num_attention_heads",
    "num_key_value_heads",
    "num_hidden_layers",
    "num_attention_layers",
    "hidden_size",
    "quantization",
)


def answer(module: Any, config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the release derives from one config.json, or its refusal."""
    hybrid = importlib.import_module("sglang.srt.configs.hybrid_arch")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    try:
        model = module.ModelConfig(str(folder), trust_remote_code=False)
    except Exception as error:
        return {"error": {"type": type(error).__name__, "message": str(error).replace(str(folder), "MODEL")}}
    out = {name: getattr(model, name) for name in READ}
    out["attention_arch"] = model.attention_arch.name
    out["dtype"] = str(model.dtype).removeprefix("torch.")
    out["architectures"] = list(model.hf_config.architectures)
    out["is_deepseek_dsa"] = module.is_deepseek_dsa(model.hf_config)
    out["uses_kda_attention"] = module.uses_kda_attention(model.hf_config)
    with contextlib.suppress(ValueError):  # Inkling's state asks for the published server arguments
        state = hybrid.mambaish_config(model)
        out["state"] = None if state is None else type(state).__name__
    return out


def main() -> None:
    release = sys.argv[1]
    logging.disable(logging.WARNING)
    importlib.import_module("sglang.srt.server_args")
    module = importlib.import_module("sglang.srt.configs.model_config")
    configs = json.loads((TESTS / "models.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as root:
        answers = {}
        for name, config in configs.items():
            folder = Path(root) / name
            folder.mkdir()
            answers[name] = answer(module, config, folder)
    data = {"made_by": f"scripts/make_model_expectations.py {release}", "answers": answers}
    text = json.dumps(data, indent=1, sort_keys=True)
    (TESTS / f"models-{release}.json").write_text(text + "\n", encoding="utf-8")


main()
