"""The plugin in SGLang itself, where releases of it are installed beside the material of the tests.

The newest release is asked here, and those that ``GRAPHGATE_ENGINES`` names (``0.5.15,0.5.19``);
``scripts/plugin_table.py`` asks all, and puts every recorded launch to them. The machine pretends to have a GPU:
launches are resolved, nothing is loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from api_tests.material import MATERIAL, ROOT
from api_tests.sglang_plugin.engines import SOURCE
from api_tests.sglang_plugin.standin import stand_in, verdict

ENGINES = Path(os.environ.get("ORACLE_HOME") or Path.home() / ".cache" / "engine-oracle")
ORACLE = MATERIAL / "oracle" / "oracle"
PROBE = ROOT / "scripts" / "_plugin_probe.py"
NEWEST = "0.5.23"
RELEASES = (*filter(None, os.environ.get("GRAPHGATE_ENGINES", "").split(",")), NEWEST)
FULL = ["--cuda-graph-backend-prefill", "full"]
pytestmark = pytest.mark.timeout(900)  # importing the engine takes ten seconds on an idle machine
JSON = ["--cuda-graph-config", '{"prefill": {"backend": "full"}}']

NEXT = {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "num_hidden_layers": 8,
    "full_attention_interval": 4,
}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 8}


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """A release that is installed."""
    return installed(str(request.param))


def installed(release: str) -> str:
    """The release; skips the calling test where it is not installed."""
    if not ORACLE.exists() or not (ENGINES / f"sglang-{release}" / "sglang").is_dir():
        pytest.skip(f"needs an installed engine (SGLang {release} and the program that runs it)")
    return release


def asked(release: str, folder: Path, url: str = "", *, plugged: bool) -> dict[str, Any]:
    """What the release makes of a few launches, in one process."""
    configs = {"next": NEXT, "llama": LLAMA}
    for name, config in configs.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    cases = [
        {"id": "named", "config": str(folder / "next.json"), "argv": FULL},
        {"id": "in JSON", "config": str(folder / "next.json"), "argv": JSON},
        {"id": "default", "config": str(folder / "next.json"), "argv": []},
        {"id": "llama", "config": str(folder / "llama.json"), "argv": FULL},
    ]
    plugins = folder / "plugins"
    if not plugins.exists():
        (plugins / "graphgate_sglang-0.1.0.dist-info").mkdir(parents=True)
        information = plugins / "graphgate_sglang-0.1.0.dist-info"
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: graphgate-sglang\nVersion: 0.1.0\n")
        (information / "entry_points.txt").write_text("[sglang.srt.plugins]\ngraphgate = graphgate_sglang:register\n")
        (plugins / "graphgate_sglang").symlink_to(SOURCE / "graphgate_sglang")
    question = {
        "plugins": str(plugins) if plugged else None,
        "cases": cases,
        "unlocked": cases[0],
        "tables": cases[0]["config"],
        "serve": bool(url),
    }
    done = subprocess.run(
        [str(ORACLE), "python", release, "H200", str(PROBE)],
        input=json.dumps(question),
        env={**os.environ, "HF_HUB_OFFLINE": "1", **({"GRAPHGATE_URL": url} if url else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_with_the_plugin_and_without(release: str, tmp_path: Path) -> None:
    without, plugged = (asked(release, tmp_path, plugged=plugged) for plugged in (False, True))
    prefills = {name: answer["prefill"] for name, answer in without["cases"].items()}
    assert prefills["named"] == prefills["in JSON"] == prefills["llama"] == "full"

    for name, written in (("named", "--cuda-graph-backend-prefill full"), ("in JSON", "prefill backend full")):
        assert plugged["cases"][name]["error"].startswith(f"ValueError: graphgate GG101: {written} asks for full")
    for name in ("default", "llama"):
        assert plugged["cases"][name] == without["cases"][name]

    assert (without["unlocked"]["prefill"], plugged["unlocked"]["prefill"]) == ("full", "disabled")
    assert "came from the platform's defaults and are disabled" in plugged["unlocked"]["log"][-1]

    assert without["outside"]["prefill"] == "full"
    assert plugged["outside"]["error"].startswith("ValueError: graphgate GG101")
    assert "AcmeForCausalLM comes from acme_models, outside SGLang" in plugged["outside"]["log"][0]

    assert set(without["tables"]) == set(plugged["tables"])
    for call, error in without["tables"].items():
        assert error.startswith("IndexError"), call
        assert plugged["tables"][call].startswith("RuntimeError: CUDA graph metadata of the MambaAttnBackendBase"), call


def test_the_engine_asks_a_service(tmp_path: Path) -> None:
    release = installed(NEWEST)
    with stand_in(verdict("rejected", said="Not here.")) as there:
        answer = asked(release, tmp_path, there.url, plugged=True)
    assert answer["cases"]["llama"]["error"] == (
        f"ValueError: graphgate at {there.url} rejects this launch: GG999: Not here. Do otherwise."
    )
    _, _, body = there.seen[0]
    assert body["hardware"] == {"gpu": "NVIDIA H200", "count": 8}
    assert body["model"] == {"config": NEXT}
    assert body["engine"] == {"name": "sglang", "version": NEWEST}
    assert body["arguments"][-2:] == FULL
