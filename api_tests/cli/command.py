"""The ``graphgate`` command, really run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api_tests.material import ROOT

CONFIGS = ROOT / "api_tests" / "conformance" / "configs"
LLAMA = str(CONFIGS / "llama.json")
QWEN3_NEXT = str(CONFIGS / "qwen3-next.json")
FULL_PREFILL = ("--cuda-graph-config", '{"prefill": {"backend": "full"}}')
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True, slots=True)
class Done:
    """What a run of the command left."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    """An environment without the settings of whoever runs the tests, offline, 100 columns wide."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GRAPHGATE_", "HF_")) and name not in (*PROXIES, "NO_COLOR", "COLUMNS")
    }
    return {**inherited, "GRAPHGATE_OFFLINE": "1", "COLUMNS": "100", **more}


def graphgate(
    *words: str, stdin: bytes = b"", cwd: Path = ROOT, settings: dict[str, str] | None = None, timeout_s: float = 120
) -> Done:
    """Run the command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "service", *words],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=environment(PYTHONPATH=str(ROOT), **(settings or {})),
        timeout=timeout_s,
        check=False,
    )
    return Done(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())
