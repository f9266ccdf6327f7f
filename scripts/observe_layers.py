"""Build the engine's own model classes, and write down what its prefill graph would see of their layers.

Run it with a Python environment in which that release of SGLang can be imported (see docs/releases.md)::

    python scripts/observe_layers.py 0.5.23 SEEN.jsonl --harness HARNESS.py --configs CONFIG.json ... < /dev/null

HARNESS.py is a module with ``build(config_file, folder) -> (model_config, model)``, which makes the engine's own model
class of a config.json without memory or weights. Every architecture of the release's registry is built from each
CONFIG.json that names it; where none does, from one that names a relative (a class of the same file), or from the
defaults of its configuration class. What was seen is appended to the file, so that a run that ends early goes on where
it stopped. ``scripts/extract_layer_views.py`` makes the release's data of it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import inspect
import io
import json
import logging
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from engine.models.parsing import read_config
from engine.models.reading import facts_of


def look(model: Any, model_config: Any) -> dict[str, Any]:
    """What the engine's prefill graph set-up finds in a built model."""
    from sglang.srt.model_executor.model_runner_components import layer_setup
    from sglang.srt.model_loader.utils import resolve_language_model

    seen: dict[str, Any] = {"class": type(model).__name__}
    try:
        owner = resolve_language_model(model)
    except AttributeError:
        return {**seen, "without": "language model"}
    while not hasattr(owner, "layers") and hasattr(owner, "model"):
        owner = owner.model
    if not hasattr(owner, "layers"):
        return {**seen, "without": "layers"}
    found = layer_setup.compute_attention_and_moe_layers(owner)
    end = getattr(model, "end_layer", max(model_config.num_hidden_layers, model_config.num_attention_layers))
    return {
        **seen,
        "layers": len(owner.layers),
        "span": end - getattr(model, "start_layer", 0),
        "stages": hasattr(model, "start_layer"),
        "attention": [layer is not None for layer in found.attention_layers],
        "moe": [layer is not None for layer in found.moe_layers],
        "hybrid_graph": bool(getattr(owner, "supports_hybrid_prefill_graph", False)),
    }


def capability() -> int:
    """The GPU's compute capability, 90 for 9.0."""
    import torch

    major, minor = torch.cuda.get_device_capability()
    return int(major) * 10 + int(minor)


def observe(release: str, harness: Any, config: dict[str, Any], origin: str, out: Any, basis: str) -> bool:
    """Build one configuration, and append what was seen. False where the engine cannot build it."""
    architecture = config["architectures"][0]
    row: dict[str, Any] = {
        "release": release,
        "architecture": architecture,
        "origin": origin,
        "basis": basis,
        "sm": capability(),
    }
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "given"
        folder.mkdir()
        file = folder / (re.sub(r"\W", "-", f"{architecture}-{origin}") + ".json")
        file.write_text(json.dumps(config))
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                model_config, model = harness.build(str(file), Path(root))
                row |= look(model, model_config)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            row["error"] = f"{type(error).__name__}: {str(error)[:200]}"
    with contextlib.suppress(Exception):
        row["kinds"] = list(facts_of(read_config(json.dumps(config)), source="inline").layer_kinds)
    print(json.dumps(row), file=out, flush=True)
    return "error" not in row


def default_configs(architecture: str, cls: type) -> Iterator[dict[str, Any]]:
    """Configurations of the class's own kind with nothing but defaults."""
    from transformers.models.auto import configuration_auto, modeling_auto

    for name in dir(modeling_auto):
        if name.endswith("_MAPPING_NAMES"):
            for model_type, names in getattr(modeling_auto, name).items():
                if architecture == names or (isinstance(names, tuple | list) and architecture in names):
                    with contextlib.suppress(Exception):
                        made = configuration_auto.CONFIG_MAPPING[model_type]()
                        yield {**made.to_dict(), "model_type": model_type, "architectures": [architecture]}
    with contextlib.suppress(Exception):
        hint = inspect.signature(cls).parameters["config"].annotation
        if isinstance(hint, str):
            hint = getattr(sys.modules[cls.__module__], hint)
        yield {**hint().to_dict(), "model_type": hint.model_type, "architectures": [architecture]}


def main() -> None:
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("release")
    parser.add_argument("observations", type=Path)
    parser.add_argument("--harness", required=True)
    parser.add_argument("--only-given", action="store_true", help="no registry walk: for a further GPU")
    parser.add_argument("--configs", nargs="*", type=Path, default=[])
    args = parser.parse_args()
    spec = importlib.util.spec_from_file_location("harness", args.harness)
    if spec is None or spec.loader is None:
        parser.error(f"{args.harness} is no Python module")
    harness = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(harness)
    from sglang.srt.models.registry import ModelRegistry

    ModelRegistry.get_supported_archs()
    registry: dict[str, Any] = dict(ModelRegistry.models)
    done: set[tuple[str, str, int]] = set()
    sm = capability()
    if args.observations.is_file():
        for line in args.observations.read_text().splitlines():
            row = json.loads(line)
            done.add((row["architecture"], row["origin"], row["sm"]))
    given: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for path in args.configs:
        config = json.loads(path.read_text())
        if config.get("architectures"):
            given[config["architectures"][0]].append((path.stem, config))
    with args.observations.open("a") as out:
        for named in given.values():
            for origin, config in named:
                if (config["architectures"][0], origin, sm) not in done:
                    observe(args.release, harness, config, origin, out, "config")
        for architecture, cls in sorted(registry.items()):
            if args.only_given or architecture in given or (architecture, "last", sm) in done:
                continue
            tried = 0
            candidates = [("default", made) for made in default_configs(architecture, cls)]
            for other, configs in given.items():
                if other in registry and registry[other].__module__ == cls.__module__:
                    candidates += [(o, {**c, "architectures": [architecture]}) for o, c in configs[:3]]
            for number, (origin, config) in enumerate(candidates[:6]):
                tried += observe(args.release, harness, config, f"{origin}-{number}", out, "relative")
                if tried >= 2:
                    break
            last = {
                "release": args.release,
                "architecture": architecture,
                "origin": "last",
                "sm": sm,
                "error": "end of tries",
            }
            print(json.dumps(last), file=out, flush=True)


if __name__ == "__main__":
    main()
