"""Launches are found wherever a manifest can hold them, and nowhere else."""

from __future__ import annotations

import pytest

from engine.errors import InvalidLaunch
from engine.manifests import launches_in

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: llm}
spec:
  template:
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}
      initContainers:
        - {name: fetch, image: x, command: [python, -m, sglang.check_env, --model, never/this]}
      containers:
        - name: engine
          image: lmsysorg/sglang:v0.5.23
          env:
            - {name: ORG, value: Qwen}
            - {name: MODEL, value: $(ORG)/Qwen3-Next-80B-A3B-Instruct}
            - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
          command: [python3, -m, sglang.launch_server]
          args:
            - --model-path
            - $(MODEL)
            - --tp-size=2
            - --api-key
            - $(KEY)
            - --cuda-graph-config
            - '{"prefill": {"backend": "full"}}'
          resources: {limits: {nvidia.com/gpu: 2}}
        - {name: sidecar, image: y, command: [sleep, infinity]}
---
apiVersion: v1
kind: Service
metadata: {name: chat}
spec: {ports: [{port: 80}]}
"""


def test_a_deployment_as_the_kubelet_joins_it() -> None:
    (found,) = launches_in(DEPLOYMENT)
    assert found.owner == "Deployment llm/chat"
    assert found.container == "engine"
    assert found.path == "[0].spec.template.spec.containers[0]"
    assert found.model is not None
    assert found.model.id == "Qwen/Qwen3-Next-80B-A3B-Instruct"
    assert found.arguments[:3] == ("--tp-size=2", "--api-key", "$(KEY)")
    assert found.arguments[3:] == ("--cuda-graph-config", '{"prefill": {"backend": "full"}}')
    assert (found.gpu_product, found.gpu_count) == ("NVIDIA-H200", 2)


@pytest.mark.parametrize(
    ("kind", "wrap"),
    [
        ("Pod", "spec: SPEC"),
        ("Job", "spec: {template: {spec: SPEC}}"),
        ("CronJob", "spec: {jobTemplate: {spec: {template: {spec: SPEC}}}}"),
        ("StatefulSet", "spec: {template: {spec: SPEC}}"),
        ("LeaderWorkerSet", "spec: {leaderWorkerTemplate: {leaderTemplate: {spec: SPEC}}}"),
        ("InferenceThing", "spec: {roles: [{name: a, podTemplate: {spec: SPEC}}]}"),
    ],
)
def test_every_kind_that_holds_a_pod_template(kind: str, wrap: str) -> None:
    spec = '{containers: [{name: c, command: [/bin/sh, -c, "exec sglang serve org/m --tp 4"]}]}'
    text = f"apiVersion: x/v1\nkind: {kind}\nmetadata: {{name: n}}\n{wrap.replace('SPEC', spec)}\n"
    (found,) = launches_in(text)
    assert found.owner == f"{kind} n"
    assert found.model is not None
    assert (found.model.id, found.arguments) == ("org/m", ("--tp", "4"))


def test_the_items_of_a_list() -> None:
    pod = "{kind: Pod, metadata: {name: NAME}, spec: {containers: [{name: c, args: [--model-path, org/NAME]}]}}"
    text = f"kind: List\napiVersion: v1\nitems: [{pod.replace('NAME', 'a')}, {pod.replace('NAME', 'b')}]"
    assert [found.model.id for found in launches_in(text) if found.model] == ["org/a", "org/b"]


def test_a_shell_script_with_a_variable_that_is_not_in_the_manifest() -> None:
    text = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, command: [bash, -c, 'sglang serve $MODEL']}]}"
    (found,) = launches_in(text)
    assert found.model is None
    assert found.problem is not None
    assert "$MODEL" in found.problem


COMPOSE = """
services:
  engine:
    image: lmsysorg/sglang
    entrypoint: python3 -m sglang.launch_server
    command: >-
      --model-path ${MODEL:-org/m} --tp 8 --json-model-override-args '{"a": "$$x"}'
    environment: [SGLANG_X=1, INHERITED]
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 8, capabilities: [gpu]}]}}}
  web: {image: nginx, command: [nginx, -g, daemon off;]}
"""


def test_a_compose_file() -> None:
    (found,) = launches_in(COMPOSE)
    assert found.owner == "service engine"
    assert found.model is not None
    assert found.model.id == "org/m"
    assert found.arguments == ("--tp", "8", "--json-model-override-args", '{"a": "$x"}')
    assert (dict(found.environment), found.gpu_count) == ({"SGLANG_X": "1"}, 8)


@pytest.mark.parametrize("text", ["", "- 1\n- 2", "kind: Pod\nspec: {containers: 3}", "services: {a: 1}", "42"])
def test_what_holds_no_launch_gives_none(text: str) -> None:
    assert launches_in(text) == ()


def test_what_is_no_yaml_says_where() -> None:
    with pytest.raises(InvalidLaunch, match=r"not YAML: .* at line [23]"):
        launches_in("kind: Pod\na: [")
