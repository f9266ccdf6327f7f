"""What the SGLang plugin changes in each release: the table of named launches, and every recorded launch again.

    python scripts/plugin_table.py [--material DIR] [--release 0.5.23 ...] [--gpu H100 ...] [--recorded-only]
                                   [--named-only] [--oracle PROGRAM]

Asked is the real engine, with the plugin and without it, on a machine that pretends to have a GPU. The optional
material folder (``../shared`` beside the checkout) holds the program that runs it (``oracle/oracle``), the models and
the recorded launches (``golden/dev.jsonl.gz``, each with what the engine said without the plugin).

A row of the first table is a launch with full prefill named on the command line: what the engine makes of it, and what
it makes of it with the plugin. Then, with the plugin: the lock on the prefill backend artificially dropped, a hybrid
model registered from outside the engine, the engine's backends with empty tables. The last table counts, for each
release, the recorded launches whose outcome, graph, arguments, locks and error are the same, those that the plugin
refuses, and those that differ in any other way; "GG101" is how many of them graphgate's own rule refuses, "both" how
many of these are the same launches. Takes a quarter of an hour on two cores; exits with 1 where anything is as it must
not be.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from conformance import facts_of

from engine.launch import Launch, ModelRef
from engine.preflight import check_facts

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "engine" / "sglang_plugin"
PROBE = Path(__file__).with_name("_plugin_probe.py")
RELEASES = tuple(f"0.5.{patch}" for patch in range(15, 24))
FULL = ["--tp-size", "8", "--cuda-graph-backend-prefill", "full"]
SAME = ("outcome", "graph", "args", "locked", "error")
REFUSAL = "graphgate GG101: "

HYBRID: dict[str, tuple[str, str | None]] = {
    "Qwen3-Next": ("Qwen--Qwen3-Next-80B-A3B-Instruct.json", None),
    "Kimi-Linear": ("_partial/moonshotai--Kimi-Linear-48B-A3B-Instruct.json", None),
    "Nemotron-H": ("nvidia--Nemotron-H-8B-Base-8K.json", None),
    "Jet-Nemotron": ("jet-ai--Jet-Nemotron-2B.json", None),
    "LFM2": ("_partial/LiquidAI--LFM2.5-2.6B.json", None),
    "Bailing V3": ("_partial/inclusionAI--Ling-3.0-tiny.json", None),
    "Granite 4 hybrid": ("_partial/ibm-granite--granite-4.0-h-tiny.json", "GraniteMoeHybridForCausalLM"),
    "Falcon-H1-7B": ("_partial/tiiuae--Falcon-H1-7B-Instruct.json", "FalconH1ForCausalLM"),
}
"""Name, config.json, and the architecture where that file names none."""

OTHERS: dict[str, tuple[str, str | None]] = {
    "Llama": ("meta-llama--Llama-3.1-8B-Instruct.json", None),
    "Qwen3": ("Qwen--Qwen3-8B.json", None),
    "DeepSeek": ("deepseek-ai--DeepSeek-V3.json", None),
    "gpt-oss": ("openai--gpt-oss-20b.json", None),
    "Granite without mamba": ("ibm-granite--granite-4-8b-dense-hybrid.json", None),
    "Inkling": ("_partial/thinkingmachines--Inkling-Small.json", None),
}

LABELS = {
    "unlocked": "Qwen3-Next, lock on the prefill backend dropped",
    "outside": "a hybrid model registered from outside",
}


def install(folder: Path) -> Path:
    """The plugin, installed into a folder as ``pip install`` does it."""
    source, target = folder / "source", folder / "plugins"
    shutil.copytree(PLUGIN, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", str(target), str(source)], check=True)  # noqa: S603 - our own source
    return target


def case_of(name: str, models: Path) -> dict[str, Any]:
    """One named launch."""
    file, architecture = (HYBRID | OTHERS)[name]
    override = ["--json-model-override-args", json.dumps({"architectures": [architecture]})] if architecture else []
    return {"id": name, "config": str(models / file), "argv": [*FULL, *override]}


def probe(oracle: Path, release: str, plugins: Path | None, models: Path) -> dict[str, Any]:
    """What :mod:`_plugin_probe` says inside that release's environment."""
    cases = [case_of(name, models) for name in (*HYBRID, *OTHERS)]
    asked = {"plugins": plugins and str(plugins), "cases": cases, "unlocked": cases[0], "tables": cases[0]["config"]}
    said = _run([str(oracle), "python", release, "H200", str(PROBE)], json.dumps(asked), {"HF_HUB_OFFLINE": "1"})
    answer: dict[str, Any] = json.loads(said.splitlines()[-1])
    return answer


def short(answer: dict[str, Any]) -> str:
    """An answer in a word: the prefill backend, or who refused."""
    if answer["outcome"] == "resolved":
        return str(answer["prefill"])
    return "ValueError" if answer["error"].startswith(f"ValueError: {REFUSAL}") else "engine's own refusal"


def named(oracle: Path, releases: list[str], plugins: Path, models: Path) -> list[str]:
    """Print the first two tables; what is as it must not be."""
    wrong: list[str] = []
    rows: dict[str, list[str]] = collections.defaultdict(list)
    facts: dict[str, list[str]] = collections.defaultdict(list)
    for release in releases:
        without, with_plugin = probe(oracle, release, None, models), probe(oracle, release, plugins, models)
        for name in (*HYBRID, *OTHERS):
            before, after = (short(said["cases"][name]) for said in (without, with_plugin))
            rows[name].append(before if before == after else f"{before} -> {after}")
            unknown = name == "Inkling" and release == "0.5.15"
            wanted = ("full", "ValueError") if name in HYBRID else ("full", "full")
            if (before, after) != wanted and not (unknown and before == after == "engine's own refusal"):
                wrong.append(f"{release} {name}: {before} -> {after}")
        for what, wanted in (("unlocked", ("full", "disabled")), ("outside", ("full", "ValueError"))):
            pair = short(without[what]), short(with_plugin[what])
            facts[what].append(" -> ".join(pair))
            warned = any(line.startswith("WARNING: graphgate") for line in with_plugin[what]["log"])
            if pair != wanted or not warned:
                wrong.append(f"{release} {what}: {pair}, warned: {warned}")
        for call in without["tables"]:
            kinds = tuple(said["tables"][call].partition(":")[0] for said in (without, with_plugin))
            facts[call].append(" -> ".join(kinds))
            if kinds != ("IndexError", "RuntimeError"):
                wrong.append(f"{release} {call}: {kinds}")
        print(f"{release} asked", file=sys.stderr)
    for title, table in (("full prefill by name, without -> with", rows), ("other checks, without -> with", facts)):
        print(f"\n{title}")
        for name, cells in table.items():
            where: dict[str, list[str]] = collections.defaultdict(list)
            for release, cell in zip(releases, cells, strict=True):
                where[cell].append(release)
            text = "; ".join(f"{cell} in {_several(places)}" for cell, places in where.items())
            print(f"  {LABELS.get(name, name):56} {text}")
    return wrong


def _several(releases: list[str]) -> str:
    """Releases that follow each other, in short."""
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def recorded(
    oracle: Path, release: str, plugins: Path, material: Path, gpus: list[str] | None
) -> tuple[collections.Counter[str], list[str]]:
    """The recorded launches of one release (on these GPUs, or all), put to it again with the plugin."""
    groups: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    with gzip.open(material / "golden" / "dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            if case["version"] == release and (gpus is None or case["gpu"] in gpus):
                groups[case["gpu"]].append(case)
    count, wrong = collections.Counter[str](), []
    for gpu, cases in sorted(groups.items()):
        asked = [
            {"id": c["id"], "config": str(material / "models" / c["model"]), "argv": c["argv"], "env": c.get("env")}
            for c in cases
        ]
        lines_in = "".join(f"{json.dumps(one)}\n" for one in asked)
        said = _run([str(oracle), "run", release, gpu], lines_in, {"ORACLE_PLUGINS": str(plugins)})
        answers = {one["id"]: one for one in map(json.loads, filter(None, said.splitlines()))}
        for case in cases:
            kind = compared(case["engine_says"], answers.get(case["id"]))
            rule = refused_by_rule(case, material)
            count.update({"launches": 1, kind: 1, "GG101": rule, "both": rule and kind == "refused"})
            if kind == "different":
                wrong.append(f"{case['id']}: {_differences(case['engine_says'], answers.get(case['id']))}")
            elif rule != (kind == "refused"):
                wrong.append(f"{case['id']}: {kind} by the plugin, {'refused' if rule else 'not refused'} by GG101")
        print(f"{release} {gpu}: {len(cases)}", file=sys.stderr)
    return count, wrong


def compared(before: dict[str, Any], after: dict[str, Any] | None) -> str:
    """``same``, ``refused`` (by the plugin, and full prefill was locked before) or ``different``."""
    if after is None:
        return "different"
    message = (after.get("error") or {}).get("message", "")
    locked_full = (
        before["outcome"] == "resolved"
        and before["graph"]["prefill"]["backend"] == "full"
        and ["prefill", "backend"] in before["locked"]
    )
    if message.startswith(REFUSAL):
        return "refused" if locked_full and after["error"]["type"] == "ValueError" else "different"
    return "same" if not _differences(before, after) else "different"


def _differences(before: dict[str, Any], after: dict[str, Any] | None) -> list[str]:
    """The parts that differ; the folder that a message names is another one each time."""
    if after is None:
        return ["no answer"]
    texts = (
        [re.sub(r"/tmp/tmp\w+", "FOLDER", json.dumps(said.get(key), sort_keys=True)) for said in (before, after)]  # noqa: S108 - a pattern
        for key in SAME
    )
    return [key for key, (one, other) in zip(SAME, texts, strict=True) if one != other]


def refused_by_rule(case: dict[str, Any], material: Path) -> bool:
    """Whether the service's own rule rejects the launch."""
    launch = Launch(
        model=ModelRef(path=Path(case["model"]).stem),
        release=case["version"],
        gpu=case["gpu"],
        arguments=tuple(case["argv"]),
        environment=case.get("env") or {},
    )
    verdict = check_facts(launch, facts_of(material / "models" / case["model"])).verdict
    return any(finding.rule == "GG101" and finding.severity == "error" for finding in verdict.findings)


def _run(command: list[str], lines: str, more: dict[str, str]) -> str:
    done = subprocess.run(command, input=lines, capture_output=True, text=True, env={**os.environ, **more}, check=False)  # noqa: S603 - the program that was named
    if done.returncode or not done.stdout:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument(
        "--material", type=Path, default=Path(os.environ.get("GRAPHGATE_MATERIAL") or ROOT.parent / "shared")
    )
    reader.add_argument("--oracle", type=Path)
    reader.add_argument("--release", action="append", choices=RELEASES)
    reader.add_argument("--gpu", action="append")
    reader.add_argument("--named-only", action="store_true")
    reader.add_argument("--recorded-only", action="store_true")
    asked = reader.parse_args()
    oracle, releases = asked.oracle or asked.material / "oracle" / "oracle", asked.release or list(RELEASES)
    with tempfile.TemporaryDirectory() as folder:
        plugins = install(Path(folder))
        wrong = [] if asked.recorded_only else named(oracle, releases, plugins, asked.material / "models")
        if not asked.named_only:
            columns = ("launches", "same", "refused", "different", "GG101", "both")
            print(f"\nrecorded launches, asked again with the plugin\n  {'':8}" + "".join(f"{c:>11}" for c in columns))
            for release in releases:
                count, more = recorded(oracle, release, plugins, asked.material, asked.gpu)
                print(f"  {release:8}" + "".join(f"{count[c]:11d}" for c in columns), flush=True)
                wrong += more
    for line in wrong:
        print(f"NOT AS IT MUST BE  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
