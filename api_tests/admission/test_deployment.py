"""The files in ``deploy/webhook``: objects that a cluster takes, with the promises that the documentation makes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from api_tests.admission.https import serving, trusting
from api_tests.admission.reviews import published, review
from api_tests.admission.test_reviews import FULL, pod
from api_tests.material import ROOT
from service.settings import Settings

FOLDER = ROOT / "deploy" / "webhook"
FILES = sorted(FOLDER.glob("*/*.yaml"))
FOREIGN = {"Kustomization", "Issuer", "Certificate"}


def documents(*files: Path) -> list[dict[str, Any]]:
    return [document for file in files for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [document for document in documents(*FILES) if document["kind"] == kind]
    return found


WEBHOOKS: list[dict[str, Any]] = of_kind("ValidatingWebhookConfiguration")["webhooks"]
DEPLOYMENT = of_kind("Deployment")
CONTAINER: dict[str, Any] = DEPLOYMENT["spec"]["template"]["spec"]["containers"][0]


def test_every_object_is_one_that_a_cluster_takes() -> None:
    kinds = {document["kind"] for document in documents(*FILES) if published(document) is False}
    assert kinds == FOREIGN


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=[webhook["name"] for webhook in WEBHOOKS])
def test_a_webhook_has_no_side_effects_and_stays_out_of_the_cluster_s_own_way(webhook: dict[str, Any]) -> None:
    assert (webhook["sideEffects"], webhook["failurePolicy"]) == ("None", "Ignore")
    assert webhook["timeoutSeconds"] == 2
    assert webhook["admissionReviewVersions"] == ["v1"]
    selected = webhook["namespaceSelector"]["matchExpressions"]
    name = next(expression for expression in selected if expression["key"] == "kubernetes.io/metadata.name")
    assert name["operator"] == "NotIn"
    assert {"kube-system", "graphgate"} <= set(name["values"])
    resources = {resource for rule in webhook["rules"] for resource in rule["resources"]}
    assert {"pods", "deployments", "statefulsets", "jobs", "cronjobs", "leaderworkersets"} <= resources
    assert not any("/" in resource for resource in resources), "subresources start nothing"
    assert webhook["clientConfig"]["service"]["path"] == "/v1/admission"


def test_every_namespace_is_looked_after_by_one_webhook_and_only_one_heeds_the_label() -> None:
    key = "graphgate.dev/exemptions"
    operators = [
        next(e["operator"] for e in webhook["namespaceSelector"]["matchExpressions"] if e["key"] == key)
        for webhook in WEBHOOKS
    ]
    assert sorted(operators) == ["In", "NotIn"]
    assert ["objectSelector" in webhook for webhook in WEBHOOKS] == [operator == "In" for operator in operators]


def test_the_service_leads_to_the_deployment_and_the_certificate_names_it() -> None:
    service = of_kind("Service")
    assert service["spec"]["selector"].items() <= DEPLOYMENT["spec"]["template"]["metadata"]["labels"].items()
    called = WEBHOOKS[0]["clientConfig"]["service"]
    assert called["name"] == service["metadata"]["name"]
    host = f"{called['name']}.{called['namespace']}.svc"
    leaf = documents(FOLDER / "cert-manager" / "certificates.yaml")[-1]
    assert host in leaf["spec"]["dnsNames"]
    (volume,) = [v for v in DEPLOYMENT["spec"]["template"]["spec"]["volumes"] if "secret" in v]
    assert volume["secret"]["secretName"] == leaf["spec"]["secretName"]
    injected = (FOLDER / "cert-manager" / "kustomization.yaml").read_text(encoding="utf-8")
    assert f"inject-ca-from: graphgate/{leaf['metadata']['name']}" in injected


def test_the_deployment_s_settings_are_settings() -> None:
    named = {entry["name"].removeprefix("GRAPHGATE_").lower() for entry in CONTAINER["env"]}
    assert named <= set(Settings.model_fields)
    for file in FOLDER.glob("*/kustomization.yaml"):
        (kustomization,) = documents(file)
        for resource in kustomization["resources"]:
            assert (file.parent / resource).exists(), resource


def test_it_is_confined() -> None:
    spec = DEPLOYMENT["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"] is True
    assert CONTAINER["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_it_starts_as_deployed_and_answers_an_api_server(tmp_path: Path) -> None:
    """The container's own words and settings, the script's certificate, the caller's trust in its authority."""
    script = FOLDER / "plain-secret" / "make-certificate.sh"
    done = subprocess.run(["sh", str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert oct((tmp_path / "tls.key").stat().st_mode)[-3:] == "600"
    host = "graphgate-admission.graphgate.svc"
    words = [word.replace("/tls/", f"{tmp_path}/") for word in CONTAINER["args"][2:]]
    words = [word for at, word in enumerate(words) if "--port" not in words[max(0, at - 1) : at + 1]]
    settings = {entry["name"]: entry["value"] for entry in CONTAINER["env"]}
    with (
        serving(tmp_path, *words, **settings) as (port, _),
        httpx.Client(verify=trusting(tmp_path / "ca.crt"), timeout=60, trust_env=False) as api,
    ):
        url, named = f"https://127.0.0.1:{port}", {"sni_hostname": host}
        answer = api.post(f"{url}/v1/admission?timeout=2s", json=review(pod(*FULL)), extensions=named)
        assert answer.json()["response"]["allowed"] is False
        large = {**pod(*FULL), "metadata": {"name": "large", "annotations": {"a": "x" * 1_400_000}}}
        answer = api.post(f"{url}/v1/admission?timeout=2s", json=review(large, large), extensions=named)
        assert answer.json()["response"]["allowed"] is True, (
            "an update of nothing, close to what a cluster keeps at most"
        )
        assert api.get(f"{url}/livez", extensions=named).status_code == 200
        assert api.get(f"{url}/v1/rules", extensions=named).status_code == 401
