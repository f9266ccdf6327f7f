"""Make the packaged catalogue of well-known models, and the list of config keys that it keeps.

    python scripts/make_catalogue.py --keys CONFIGS   writes engine/models/config_keys.json
    python scripts/make_catalogue.py CONFIGS          writes engine/models/catalogue.json
    python scripts/make_catalogue.py --check CONFIGS  writes nothing; fails where a key is missing or an entry differs

CONFIGS is a folder of published config.json files, each named after its model with "/" as "--"; files in folders below
it count too; by default "models" below the folder that GRAPHGATE_MATERIAL names, and without either there is nothing to
compare with. ``scripts/catalogue.toml`` lists the models. A key is kept where the code under engine/ that reads configs
names it, as a string or an attribute, and a config of the folder has it: whoever reads a new key runs both again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "engine" / "models"
KEYS = MODELS / "config_keys.json"
CATALOGUE = MODELS / "catalogue.json"
LIST = ROOT / "scripts" / "catalogue.toml"
READERS = ("models", "sglang", "guards", "capture")

sys.path.insert(0, str(ROOT))
from engine.models.parsing import read_config  # noqa: E402 - the script runs from a checkout, uninstalled

# Named by code in another sense, or of no use to it, and large in the files.
_LEFT_OUT = frozenset(
    {"id2label", "label2id", "modules_to_not_convert", "ignore", "quantized_layers", "exclude_modules"}
)


def main() -> int:
    """Do what the command line says; 1 where --check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", action="store_true", help="make the list of keys, not the catalogue")
    material = os.environ.get("GRAPHGATE_MATERIAL")
    parser.add_argument("configs", type=Path, nargs="?", default=Path(material) / "models" if material else None)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.configs is None:
        if options.check:
            print("make_catalogue: no folder of configs to compare with")
            return 0
        parser.error("no folder of configs: name one, or set GRAPHGATE_MATERIAL")
    files = {path.stem: path for path in sorted(options.configs.rglob("*.json"), key=lambda p: -len(p.parts))}
    if options.check:
        return _compare(files)
    path, text = (KEYS, keys_text(files)) if options.keys else (CATALOGUE, catalogue_text(files))
    path.write_text(text, encoding="utf-8")
    return 0


def _compare(files: Mapping[str, Path]) -> int:
    """1 where a key that code reads is not kept, or the catalogue is not what the script makes."""
    missing = set(json.loads(keys_text(files))["keys"]) - set(json.loads(KEYS.read_text(encoding="utf-8"))["keys"])
    stale = catalogue_text(files) != CATALOGUE.read_text(encoding="utf-8")
    if missing:
        print(f"config_keys.json lacks {', '.join(sorted(missing))}: run with --keys, then without")
    if stale:
        print("catalogue.json is not what the script makes: run it")
    return 1 if missing or stale else 0


def keys_text(files: Mapping[str, Path]) -> str:
    """config_keys.json."""
    present: set[str] = set()
    for path in files.values():
        present.update(_keys_of(read_config(path.read_bytes())))
    keys = sorted((present & _named_by_code()) - _LEFT_OUT)
    return json.dumps({"made_by": "python scripts/make_catalogue.py --keys CONFIGS", "keys": keys}, indent=1) + "\n"


def catalogue_text(files: Mapping[str, Path]) -> str:
    """catalogue.json: one model a line."""
    from engine.models.catalogue import pruned  # reads config_keys.json, which the other command may just have made

    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))
    completed: Mapping[str, Mapping[str, Any]] = listed.get("completed", {})
    lines = []
    for model_id in sorted({*listed["models"], *completed}, key=str.lower):
        path = files.get(model_id.replace("/", "--"))
        if path is None:
            raise SystemExit(f"no config of {model_id} in the folder")
        config = read_config(path.read_bytes())
        added = {key: value for key, value in completed.get(model_id, {}).items() if key not in config}
        entry: dict[str, Any] = {"config": pruned({**added, **config})}
        if model_id in completed:
            entry["completed"] = sorted(added)
        lines.append(f"{json.dumps(model_id)}: {json.dumps(entry, separators=(',', ':'), sort_keys=True)}")
    body = ",\n".join(lines)
    return f'{{"made_by": "python scripts/make_catalogue.py CONFIGS", "models": {{\n{body}\n}}}}\n'


def _keys_of(config: Mapping[str, Any]) -> Iterator[str]:
    for key, value in config.items():
        yield key
        if isinstance(value, Mapping):
            yield from _keys_of(value)


def _named_by_code() -> set[str]:
    """Every string and attribute name in the code that reads configs, and in what configuration classes rename."""
    names: set[str] = set()
    for reader in READERS:
        for path in (ROOT / "engine" / reader).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.update(node.value.split("."))
                elif isinstance(node, ast.Attribute):
                    names.add(node.attr)
    for path in (ROOT / "engine" / "sglang" / "releases").glob("*/model_classes.json"):
        for row in _objects(json.loads(path.read_text(encoding="utf-8"))):
            for kind in ("map", "follows", "sub", "declared"):
                table = row.get(kind)
                if isinstance(table, dict):
                    names.update(table)
                    names.update(value for value in table.values() if isinstance(value, str))
    return names


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


if __name__ == "__main__":
    raise SystemExit(main())
