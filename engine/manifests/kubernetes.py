"""Launches in Kubernetes objects: Pods, workloads, lists, LeaderWorkerSets and any custom resource with a pod template.

A pod template is whatever mapping holds a list ``containers`` of mappings; so kinds need no table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.manifests.commands import expanded, found_launch
from engine.manifests.found import FoundLaunch

_MAX_DEPTH = 40
_PRODUCT_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "gpu.nvidia.com/class")


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
    for path, template in _pod_specs(document, where, 0):
        yield from _containers(template, path, owner)


def _pod_specs(node: Any, path: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, Mapping):
        containers = node.get("containers")
        if isinstance(containers, list) and any(isinstance(container, Mapping) for container in containers):
            yield path, node
        for key, value in node.items():
            if key not in {"containers", "initContainers", "ephemeralContainers", "status"}:
                yield from _pod_specs(value, f"{path}.{key}".lstrip("."), depth + 1)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _pod_specs(value, f"{path}[{index}]", depth + 1)


def _containers(spec: Mapping[str, Any], path: str, owner: str) -> Iterator[FoundLaunch]:
    product = _product(spec)
    for index, container in enumerate(spec["containers"]):
        if not isinstance(container, Mapping):
            continue
        environment = _environment(container.get("env"))
        words = [expanded(word, environment) for key in ("command", "args") for word in _words(container.get(key))]
        place = FoundLaunch(
            owner=owner,
            container=str(container.get("name", index)),
            path=f"{path}.containers[{index}]".lstrip("."),
            gpu_product=product,
            gpu_count=_gpus(container),
        )
        found = found_launch(words, environment, place)
        if found is not None:
            yield found


def _words(value: Any) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else []


def _environment(entries: Any) -> dict[str, str]:
    """The variables whose values stand in the manifest; later ones see earlier ones, as with the kubelet."""
    out: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str) and "value" in entry:
            value = entry["value"]
            out[entry["name"]] = expanded("" if value is None else str(value), out)
    return out


def _gpus(container: Mapping[str, Any]) -> int | None:
    resources = container.get("resources")
    for kind in ("limits", "requests"):
        part = resources.get(kind) if isinstance(resources, Mapping) else None
        count = part.get("nvidia.com/gpu") if isinstance(part, Mapping) else None
        if isinstance(count, str | int) and str(count).isdigit() and int(count) > 0:
            return int(count)
    return None


def _product(spec: Mapping[str, Any]) -> str | None:
    selector = spec.get("nodeSelector")
    if isinstance(selector, Mapping):
        for label in _PRODUCT_LABELS:
            if isinstance(selector.get(label), str):
                return str(selector[label])
    return _product_by_affinity(spec.get("affinity"))


def _product_by_affinity(affinity: Any) -> str | None:
    """The product that a required node affinity names, where it names just one."""
    node = affinity.get("nodeAffinity") if isinstance(affinity, Mapping) else None
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") if isinstance(node, Mapping) else None
    terms = required.get("nodeSelectorTerms") if isinstance(required, Mapping) else None
    products: set[str] = set()
    for term in terms if isinstance(terms, list) else []:
        expressions = term.get("matchExpressions") if isinstance(term, Mapping) else None
        for expression in expressions if isinstance(expressions, list) else []:
            if isinstance(expression, Mapping) and expression.get("key") in _PRODUCT_LABELS:
                products.update(str(value) for value in expression.get("values") or ())
    return products.pop() if len(products) == 1 else None
