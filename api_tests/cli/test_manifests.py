"""``graphgate check -f``: every launch of a manifest, located."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from api_tests.cli.command import Done, graphgate
from api_tests.cli.test_formats import check_sarif

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: llm}
spec:
  template:
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}
      containers:
        - name: hybrid
          command: [python3, -m, sglang.launch_server]
          args: [--model-path, Qwen/Qwen3-Next-80B-A3B-Instruct, --cuda-graph-backend-prefill, full]
          resources: {limits: {nvidia.com/gpu: 2}}
        - name: plain
          command: [sglang, serve, meta-llama/Llama-3.1-8B-Instruct]
---
apiVersion: v1
kind: Pod
metadata: {name: batch}
spec:
  containers:
    - name: engine
      command: [python3, -m, sglang.launch_server, --model-path, nobody/knows-this]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the manifest."""
    (tmp_path / "deploy.yaml").write_text(MANIFEST, encoding="utf-8")
    return tmp_path


def _check(folder: Path, *words: str) -> Done:
    return graphgate("check", "-f", "deploy.yaml", *words, cwd=folder)


def test_each_launch_has_its_place_and_its_answer(folder: Path) -> None:
    done = _check(folder)
    assert done.code == 2
    said = " ".join(done.out.split())
    assert "deploy.yaml: Deployment llm/chat ([0].spec.template.spec.containers[0]) rejected: GG101" in said
    assert "2 x H200" in said
    assert "deploy.yaml: Deployment llm/chat ([0].spec.template.spec.containers[1]) accepted: Runs as asked" in said
    assert "unusable: MODEL: nobody/knows-this is not in the packaged catalogue" in said
    assert said.endswith("3 launches: 1 accepted, 1 rejected, 1 unusable")


def test_json_lists_them_in_order(folder: Path) -> None:
    launches = _check(folder, "--format", "json").document["launches"]
    assert [launch.get("verdict") for launch in launches] == ["rejected", "accepted", None]
    assert launches[2]["error"]["code"] == "hub-unavailable"
    assert {launch["file"] for launch in launches} == {"deploy.yaml"}


def test_sarif_and_annotations_name_the_file(folder: Path) -> None:
    document = _check(folder, "--format", "sarif").document
    check_sarif(document)
    run = document["runs"][0]
    (result,) = run["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "deploy.yaml"
    assert run["invocations"][0]["executionSuccessful"] is False
    lines = _check(folder, "--format", "github").out.splitlines()
    assert [line.split("::")[1].split(" ")[0] for line in lines] == ["error", "notice", "error"]
    assert all("file=deploy.yaml," in line for line in lines)


def test_the_exit_code_is_the_worst_of_them(folder: Path) -> None:
    whole = (folder / "deploy.yaml").read_text(encoding="utf-8")
    (folder / "deploy.yaml").write_text(whole.split("---")[0], encoding="utf-8")
    assert _check(folder).code == 1
    (folder / "deploy.yaml").write_text(whole.split("---")[0].replace("full", "breakable"), encoding="utf-8")
    assert _check(folder).code == 0


def test_platform_and_environment_ride_along(folder: Path) -> None:
    """What the command line says beside the manifest counts for each launch in it."""
    plain = _check(folder, "--format", "json").document["launches"][1]
    more = _check(folder, "--format", "json", "--env", "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING=1", "--gpu", "T4")
    other = more.document["launches"][1]
    assert (plain["hardware"]["name"], other["hardware"]["name"]) == ("H200", "H200"), "the manifest names the GPU"
    assert plain["prediction"]["args"]["mem_fraction_static"] != other["prediction"]["args"]["mem_fraction_static"]
    adjusted = _check(folder, "--strict", "--defaults", '{"prefill": {"backend": "full"}}', "--format", "json")
    assert adjusted.document["launches"][1]["prediction"]["graph"]["prefill"]["backend"] == "full"


def test_a_manifest_comes_through_a_pipe() -> None:
    done = graphgate("check", "-f", "-", "--format", "json", stdin=MANIFEST.encode())
    assert [launch["file"] for launch in json.loads(done.out)["launches"]] == ["<stdin>"] * 3


def test_the_image_s_tag_is_the_release_unless_one_is_named(tmp_path: Path) -> None:
    container = {
        "name": "engine",
        "image": "lmsysorg/sglang:v0.5.20-cu126",
        "command": ["sglang", "serve", "meta-llama/Llama-3.1-8B-Instruct"],
    }
    document = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    (tmp_path / "deploy.yaml").write_text(json.dumps(document), encoding="utf-8")

    def release(*words: str) -> str:
        return str(_check(tmp_path, "--format", "json", *words).document["launches"][0]["engine"]["version"])

    assert (release(), release("--release", "0.5.23")) == ("0.5.20", "0.5.23")
    container["image"] = "lmsysorg/sglang:latest"
    (tmp_path / "deploy.yaml").write_text(json.dumps(document), encoding="utf-8")
    assert release() == "0.5.23"
