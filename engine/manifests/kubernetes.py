"""Launches in Kubernetes objects: Pods, workloads, lists, LeaderWorkerSets and any custom resource with a pod template.

Annotations of the pod template, or of an object around it, say what a manifest does not: ``graphgate.dev/release``,
``graphgate.dev/gpu``, and ``graphgate.dev/model`` (``org/name``, or ``org/name@revision``) for a model that is
mounted as a folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from engine.launch import ModelRef
from engine.manifests.commands import found_launch
from engine.manifests.found import FoundLaunch
from engine.manifests.gpu_labels import other_device, selected_gpu
from engine.manifests.images import release_of
from engine.manifests.templates import PodSpec, pod_specs
from engine.manifests.variables import variables_of

ANNOTATION = "graphgate.dev/"


def kubernetes_launches(document: Mapping[str, Any], where: str = "") -> Iterator[FoundLaunch]:
    """Every launch below one object, or below the items of a list of objects."""
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            if isinstance(item, Mapping):
                yield from kubernetes_launches(item, f"{where}.items[{index}]".lstrip("."))
        return
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = metadata.get("name") or metadata.get("generateName") or "unnamed"
    namespace = metadata.get("namespace")
    owner = (
        f"{document.get('kind', 'object')} {namespace}/{name}"
        if namespace
        else f"{document.get('kind', 'object')} {name}"
    )
    for pod in pod_specs(document, where):
        yield from _containers(pod, owner)


def _containers(pod: PodSpec, owner: str) -> Iterator[FoundLaunch]:
    said = _annotated(pod.metadata)
    gpu = said.get("gpu") or selected_gpu(pod.spec)
    for kind in ("initContainers", "containers"):
        containers = pod.spec.get(kind)
        for index, container in enumerate(containers if isinstance(containers, list) else []):
            if not isinstance(container, Mapping):
                continue
            variables = variables_of(container, pod.variables, pod.metadata)
            words = [variables.expanded(word) for key in ("command", "args") for word in _words(container.get(key))]
            place = FoundLaunch(
                owner=owner,
                container=str(container.get("name", index)),
                path=f"{pod.path}.{kind}[{index}]".lstrip("."),
                model=_model(said.get("model")),
                release=said.get("release") or release_of(container.get("image")),
                gpu_product=gpu,
                gpu_count=_gpus(container),
                unknown=tuple(sorted(variables.unknown)),
            )
            found = found_launch(words, variables.values, place, image=container.get("image"))
            other = other_device(container) if found is not None and "gpu" not in said else None
            if found is not None and other is not None:
                why = f"It is for another kind of device ({other}); NVIDIA GPUs are examined."
                yield replace(place, problem=why, model=None)
            elif found is not None:
                yield replace(found, environment=variables.known(found.environment), unread=variables.unread())


def _annotated(metadata: Mapping[str, Any]) -> dict[str, str]:
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Mapping):
        return {}
    return {
        str(name).removeprefix(ANNOTATION): value.strip()
        for name, value in annotations.items()
        if str(name).startswith(ANNOTATION) and isinstance(value, str) and value.strip()
    }


def _model(annotated: str | None) -> ModelRef | None:
    if annotated is None:
        return None
    identity, _, revision = annotated.partition("@")
    return ModelRef(id=identity, revision=revision or None)


def _words(value: Any) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else []


def _gpus(container: Mapping[str, Any]) -> int | None:
    resources = container.get("resources")
    for kind in ("limits", "requests"):
        part = resources.get(kind) if isinstance(resources, Mapping) else None
        count = part.get("nvidia.com/gpu") if isinstance(part, Mapping) else None
        if isinstance(count, str | int) and str(count).isdigit() and int(count) > 0:
            return int(count)
    return None
