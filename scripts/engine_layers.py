"""Which layers an installed SGLang takes for recurrent and which for attention, as JSON on standard output.

    python scripts/engine_layers.py CONFIGS > api_tests/models/engine_layers.json

To be run by the Python of an environment that has SGLang, over a folder of published config.json files. Only
configurations whose class names its recurrent layers are listed; the answer is the engine's own, so that the reading of
layer patterns can be tested against it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

_RECURRENT = ("linear_layer_ids", "mamba_layer_ids", "lightning_layer_ids")


def main() -> int:
    """Ask the engine for every config below the folder."""
    # By name: the engine is installed where this runs, not where it is checked.
    get_config = import_module("sglang.srt.utils.hf_transformers_utils").get_config

    folder = Path(sys.argv[1])
    answers: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.json")):
        with tempfile.TemporaryDirectory() as model:
            shutil.copy(path, os.path.join(model, "config.json"))  # noqa: PTH118 - a name, no path
            try:
                config = get_config(model, trust_remote_code=False)
                answer = _layers(config) or _layers(config.get_text_config())
            except Exception as error:  # whatever the engine says of a config that it cannot read
                print(f"{path.name}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
                continue
        if answer:
            answers[path.relative_to(folder).as_posix()] = answer
    release = version("sglang") if len(sys.argv) < 3 else sys.argv[2]
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())
    head = f'"made_by": "python scripts/engine_layers.py", "release": "{release}"'
    sys.stdout.write(f'{{{head}, "layers": {{\n{lines}\n}}}}\n')
    return 0


def _layers(config: Any) -> dict[str, list[int]] | None:
    for name in _RECURRENT:
        try:
            recurrent = getattr(config, name)
        except Exception:  # noqa: S112 - a class that has the property but cannot answer it for this config
            continue
        if recurrent is None:
            continue
        try:
            attention = list(config.full_attention_layer_ids)
        except Exception:  # as above
            attention = []
        return {"recurrent": list(recurrent), "attention": attention}
    return None


if __name__ == "__main__":
    raise SystemExit(main())
