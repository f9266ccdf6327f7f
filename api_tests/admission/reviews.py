"""Admission reviews as an API server sends them, and the published schemas."""

from __future__ import annotations

import functools
import importlib
import importlib.resources
import json
import uuid
from collections.abc import Mapping
from typing import Any

import httpx

KUBERNETES = "1.37.0"
"""The release whose schemas objects are held against."""

_FOLDER = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema" / f"v{KUBERNETES}-local-strict"
_jsonschema: Any = importlib.import_module("jsonschema")
Refused: type[Exception] = _jsonschema.ValidationError
"""What :func:`against` and :func:`published` raise."""

_referencing: Any = importlib.import_module("referencing")
"""Neither has types of its own."""


def review(document: Any, before: Any = None, *, operation: str = "CREATE", **more: Any) -> dict[str, Any]:
    """An AdmissionReview of the object, with what an API server sends beside it."""
    known = document or before or {}
    metadata = known.get("metadata") if isinstance(known, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    group, _, version = str(known.get("apiVersion", "v1") if isinstance(known, dict) else "v1").rpartition("/")
    kind = {"group": group, "version": version, "kind": known.get("kind", "") if isinstance(known, dict) else ""}
    resource = {"group": group, "version": version, "resource": kind["kind"].lower() + "s"}
    request = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": metadata.get("name", "x"),
        "namespace": metadata.get("namespace", "llm"),
        "operation": operation,
        "userInfo": {
            "username": "system:serviceaccount:kube-system:deployment-controller",
            "groups": ["system:authenticated"],
        },
        "object": document,
        "oldObject": before,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **more,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def ask(api: httpx.Client, sent: dict[str, Any]) -> dict[str, Any]:
    """The response within the review; its form is checked here, for every test."""
    answer = api.post("/v1/admission", params={"timeout": "2s"}, json=sent)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert set(found) == {"apiVersion", "kind", "response"}
    response: dict[str, Any] = found["response"]
    assert set(response) <= {"uid", "allowed", "status", "warnings", "auditAnnotations"}, "no patch"
    assert response["uid"] == sent["request"]["uid"]
    assert response["allowed"] is ("status" not in response)
    if "status" in response:
        against("status-meta-v1", response["status"])
    warnings = response.get("warnings", [])
    assert len(warnings) <= 5
    assert all(0 < len(text) <= 120 and "\n" not in text for text in warnings)
    return response


def against(name: str, value: Any) -> None:
    """Hold a value against one of the published schemas, strictly: a name that is not in it is an error."""
    _validator(name).validate(value)


def published(document: Mapping[str, Any]) -> bool:
    """Hold an object against its kind's schema; False where Kubernetes publishes none."""
    group, _, version = str(document["apiVersion"]).rpartition("/")
    name = "-".join(filter(None, (document["kind"].lower(), group.partition(".")[0], version)))
    if not (_FOLDER / f"{name}.json").is_file():
        return False
    against(name, document)
    return True


def _schema(name: str) -> Any:
    return json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@functools.cache
def _definitions() -> Any:
    return _referencing.Resource.from_contents(_schema("_definitions")) @ _referencing.Registry()


@functools.cache
def _validator(name: str) -> Any:
    resource = _referencing.Resource.from_contents(_schema(name))
    return _jsonschema.Draft202012Validator(_schema(name), registry=resource @ _definitions())
