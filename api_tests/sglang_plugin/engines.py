"""Engines of :mod:`api_tests.sglang_plugin.layouts` on disk, and launches of them in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api_tests.material import ROOT
from api_tests.sglang_plugin.layouts import COMMON, LAYOUTS

PLUGIN = ROOT / "engine" / "sglang_plugin"
SOURCE = PLUGIN / "src-py"

LAUNCH = """
import json, logging, sys
asked = json.loads(sys.stdin.read())
kept = []
class Kept(logging.Handler):
    def emit(self, record):
        kept.append(f"{record.levelname}: {record.getMessage()}")
logging.getLogger().addHandler(Kept())
logging.getLogger().setLevel(logging.DEBUG)
sys.argv = asked["argv"]
from sglang.srt.plugins import load_plugins
load_plugins()
imported = sorted(name for name in sys.modules if name.startswith("sglang.srt.layers"))
answers = []
if asked["script"] is not None:
    exec(asked["script"])
else:
    from sglang.srt.server_args import ServerArgs
    for launch in asked["launches"]:
        try:
            given = ServerArgs(**launch)
            if hasattr(given, "resolve_once"):
                given.resolve_once()
            from sglang.srt.arg_groups.overrides import resolved_view
            graph = getattr(resolved_view(given), "cuda_graph_config", None)
            answers.append(graph and graph.prefill.backend)
        except Exception as error:
            answers.append(f"{type(error).__name__}: {error}")
print(json.dumps({"answers": answers, "log": kept, "imported": imported}))
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """What the child answered to each launch, what was logged, and which attention modules loading plugins imported."""

    answers: list[Any]
    log: list[str]
    imported: list[str]

    def said(self, level: str) -> list[str]:
        """The plugin's own lines of that level."""
        return [line for line in self.log if line.startswith(f"{level}: ") and "graphgate" in line]


@dataclass(frozen=True, slots=True)
class FakeEngine:
    """An engine in a folder, with the plugin installed beside it as its metadata say."""

    root: Path

    def launch(self, *launches: Mapping[str, Any], argv: list[str] | None = None, **environment: str) -> Ended:
        """Resolve the launches one after the other in one process of this engine."""
        return self._run({"launches": launches, "argv": argv or ["engine"], "script": None}, environment)

    def script(self, text: str, **environment: str) -> Ended:
        """Run a script in a process of this engine after plugins are loaded; it appends to ``answers``."""
        return self._run({"launches": [], "argv": ["engine"], "script": text}, environment)

    def write(self, name: str, text: str) -> None:
        """A file of this engine, written anew."""
        (self.root / name).write_text(text, encoding="utf-8")

    def add(self, name: str, text: str) -> None:
        """Text at the end of a file of this engine."""
        with (self.root / name).open("a", encoding="utf-8") as file:
            file.write(text)

    def _run(self, asked: Mapping[str, Any], environment: Mapping[str, str]) -> Ended:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHGATE_", "SGLANG_"))}
        done = subprocess.run(
            [sys.executable, "-S", "-c", LAUNCH],
            input=json.dumps(asked),
            env={
                **kept,
                "PYTHONPATH": f"{self.root}{os.pathsep}{SOURCE}",
                "PYTHONDONTWRITEBYTECODE": "1",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return Ended(**json.loads(done.stdout.splitlines()[-1]))


def engine_at(root: Path, layout: str, release: str | None = None) -> FakeEngine:
    """An engine of that layout, written into a folder."""
    usual, files = LAYOUTS[layout]
    for name, text in {**COMMON, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            text.format(release=usual if release is None else release) if name == "sglang/__init__.py" else text
        )
    metadata = root / "graphgate_sglang-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: graphgate-sglang\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text("[sglang.srt.plugins]\ngraphgate = graphgate_sglang:register\n")
    return FakeEngine(root)
