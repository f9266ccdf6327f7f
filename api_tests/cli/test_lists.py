"""``rules``, ``releases``, ``gpus``, ``models``, ``compare``, ``--help``."""

from __future__ import annotations

import subprocess
import sys

from api_tests.cli.command import FULL_PREFILL, QWEN3_NEXT, graphgate
from api_tests.material import ROOT
from engine.version import VERSION


def test_rules_lists_them_and_shows_one_by_id_or_slug() -> None:
    listed = graphgate("rules")
    assert listed.code == 0
    assert "GG101  error" in listed.out
    one = graphgate("rules", "gg101")
    assert one.out == graphgate("rules", "hybrid-full-prefill").out
    for heading in ("WHAT IT DOES", "WHY IT IS BAD", "WHAT TO DO", "EXCEPTIONS", "EVIDENCE"):
        assert f"\n{heading}\n" in one.out
    assert "https://github.com/sgl-project/sglang/issues/48593" in one.out
    assert max(map(len, one.out.splitlines())) <= 100
    rule = graphgate("rules", "GG101", "--format", "json").document["rule"]
    assert rule["covers"] == ["HYBRID_LINEAR_FULL_PREFILL"]


def test_the_pages_are_what_the_rules_say() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/make_rule_pages.py", "--check"], cwd=ROOT, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")
    for path in (ROOT / "docs" / "rules").glob("GG*.md"):
        page = path.read_text(encoding="utf-8").partition("\n")[2]
        assert graphgate("rules", path.name[:5], "--format", "markdown").out == page


def test_gpus_are_those_of_the_driver() -> None:
    """Memory in MiB as nvidia-smi prints it on an H200."""
    assert "H200        9.0         143,771" in graphgate("gpus").out
    rows = {gpu["name"]: gpu for gpu in graphgate("gpus", "--format", "json").document["gpus"]}
    assert rows["H200"]["memory_mib"] == 143771
    assert rows["H200"]["compute_capability"] == "9.0"


def test_releases_name_the_newest() -> None:
    document = graphgate("releases", "--format", "json").document
    assert document["newest"] == document["releases"][-1] == "0.5.23"
    assert "sglang 0.5.23" in graphgate("releases").out


def test_models_shows_what_the_config_says() -> None:
    """Qwen3-Next: every fourth of its 48 layers attends (its config.json: full_attention_interval 4)."""
    done = graphgate("models", "Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert done.code == 0
    assert "12 x (3 gdn, attention)" in done.out
    model = graphgate("models", QWEN3_NEXT, "--format", "json").document["model"]
    assert model["hybrid_family"] == "gdn"
    assert model["layer_kinds"][:4] == ["gdn", "gdn", "gdn", "attention"]


def test_compare_says_what_an_upgrade_changes() -> None:
    words = ("compare", QWEN3_NEXT, "--from", "0.5.23", "--to", "0.9.0")
    done = graphgate(*words, "--", "--tp-size", "8")
    assert done.code == 0
    assert "SGLang 0.5.23: accepted" in done.out
    assert "SGLang 0.9.0: accepted" in done.out
    rejected = graphgate(*words, "--format", "json", "--", *FULL_PREFILL)
    assert rejected.code == 1
    assert [row["release"] for row in rejected.document["releases"]] == ["0.5.23", "0.9.0"]


def test_help_and_version() -> None:
    assert graphgate("--version").out == f"graphgate {VERSION}\n"
    overview = graphgate("--help")
    assert overview.code == 0
    for command in ("check", "compare", "capture", "serve", "worker", "rules", "releases", "gpus", "models"):
        assert f"\n  {command} " in overview.out
        said = graphgate(command, "--help")
        assert (said.code, said.err) == (0, "")
        assert f"graphgate {command}" in said.out
    assert graphgate().out == overview.out
    check = " ".join(graphgate("check", "--help").out.split())
    assert "It is taken for a path if it begins with ./, ../ or / or ends in .json" in check
    assert "0 accepted or adjusted, 1 rejected" in check
