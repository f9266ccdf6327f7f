"""The files in ``deploy/kubernetes``: objects that a cluster takes, confined, probed, and with no secret in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from api_tests.admission.reviews import published
from api_tests.house.test_containers import SERVICES
from api_tests.material import ROOT
from engine.version import VERSION
from service.settings import Settings

FOLDER = ROOT / "deploy" / "kubernetes"
FILES = sorted(FOLDER.glob("**/*.yaml"))
WORKLOADS = ("Deployment", "StatefulSet")


def documents(*files: Path) -> list[dict[str, Any]]:
    return [document for file in files for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def objects(kind: str, folder: str = "*") -> dict[str, dict[str, Any]]:
    """Those of a kind by name, of the fleet's folders."""
    found = documents(*FOLDER.glob(f"{folder}/*.yaml"))
    return {document["metadata"]["name"]: document for document in found if document["kind"] == kind}


PODS = {name: workload["spec"]["template"]["spec"] for kind in WORKLOADS for name, workload in objects(kind).items()}


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(FOLDER)) for file in FILES])
def test_every_object_is_one_that_a_cluster_takes(file: Path) -> None:
    unknown = {document["kind"] for document in documents(file) if published(document) is False}
    assert unknown <= {"Kustomization"}


@pytest.mark.parametrize("folder", ["base", "with-stores"])
def test_every_file_of_a_folder_is_applied(folder: str) -> None:
    (listed,) = documents(FOLDER / folder / "kustomization.yaml")
    there = {file.name for file in (FOLDER / folder).glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed["resources"]) - {"../base"} == there


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_confined(name: str) -> None:
    pod = PODS[name]
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] in objects("ServiceAccount")
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])
    assert "memory" in container["resources"]["limits"]
    assert "livenessProbe" in container
    assert pod["terminationGracePeriodSeconds"] > Settings.model_fields["capture_grace_s"].default


def test_the_api_survives_a_node_and_says_when_it_leaves() -> None:
    api = objects("Deployment")["graphgate-api"]
    assert api["spec"]["replicas"] == 2
    (container,) = PODS["graphgate-api"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    environment = {variable["name"]: variable["value"] for variable in container["env"]}
    drained = float(environment["GRAPHGATE_DRAIN_S"])
    probe = container["readinessProbe"]
    assert drained > probe["periodSeconds"], "at least one probe has found it unready before it stops listening"
    assert environment["GRAPHGATE_ACCESS"] == "required"
    (budget,) = objects("PodDisruptionBudget").values()
    assert budget["spec"]["selector"] == api["spec"]["selector"]
    assert budget["spec"]["minAvailable"] < api["spec"]["replicas"]


def test_workers_are_the_same_but_for_their_device() -> None:
    cpu, gpu = (PODS[f"graphgate-worker-{device}"]["containers"][0] for device in ("cpu", "gpu"))
    assert gpu["resources"]["limits"]["nvidia.com/gpu"] == gpu["resources"]["requests"]["nvidia.com/gpu"] == 1
    assert "nvidia.com/gpu" not in cpu["resources"]["limits"]
    for part in ("image", "args", "env", "envFrom", "securityContext", "volumeMounts"):
        assert cpu[part] == gpu[part]
    assert cpu["args"] == SERVICES["worker"]["command"]
    assert PODS["graphgate-api"]["containers"][0]["args"] == SERVICES["api"]["command"]
    images = {PODS[f"graphgate-{name}"]["containers"][0]["image"] for name in ("api", "worker-cpu")}
    assert images == {f"graphgate-service:{VERSION}", f"graphgate-worker:{VERSION}"}


def test_secrets_are_named_and_not_written_down() -> None:
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"^kind: Secret$", text, re.M), file
        assert "://" not in "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")), file
    for name in ("api", "worker-cpu", "worker-gpu"):
        assert PODS[f"graphgate-{name}"]["containers"][0]["envFrom"] == [{"secretRef": {"name": "graphgate"}}]


def test_every_pod_is_under_a_network_policy_and_every_service_finds_its_pods() -> None:
    labels = {
        name: workload["spec"]["template"]["metadata"]["labels"]
        for kind in WORKLOADS
        for name, workload in objects(kind).items()
    }
    for name, own in labels.items():
        policies = [
            policy
            for policy in objects("NetworkPolicy").values()
            if policy["spec"]["podSelector"]["matchLabels"].items() <= own.items()
        ]
        assert len(policies) == 1, name
        assert policies[0]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    for service in objects("Service").values():
        chosen = [name for name, own in labels.items() if service["spec"]["selector"].items() <= own.items()]
        (name,) = chosen
        ports = {port["name"] for port in PODS[name]["containers"][0]["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
