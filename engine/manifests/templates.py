"""Where in a Kubernetes object pods are described, with what is said around them.

A pod's description is whatever mapping holds a list ``containers`` of mappings; so kinds need no table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_MAX_DEPTH = 40
_NO_TEMPLATES = frozenset({"containers", "initContainers", "ephemeralContainers", "status", "metadata"})
_GROUP = "leaderWorkerTemplate"
_INDEX_LABEL = "leaderworkerset.sigs.k8s.io/worker-index"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSpec:
    """One description of pods.

    ``metadata`` holds the labels and annotations of the nearest object around it and of those further out, the nearer
    winning, and the namespace; ``variables`` what the workload's controller gives every container.
    """

    path: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


def pod_specs(document: Mapping[str, Any], where: str) -> Iterator[PodSpec]:
    """Every description of pods in one object, in order."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    yield from _walk(document, PodSpec(path=where), str(name or "NAME"), 0)


def _walk(node: Any, around: PodSpec, name: str, depth: int) -> Iterator[PodSpec]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, Mapping):
        around = _with_metadata(around, node.get("metadata"))
        containers = node.get("containers")
        if isinstance(containers, list) and any(isinstance(container, Mapping) for container in containers):
            yield replace(around, spec=node)
        for key, value in node.items():
            if key in _NO_TEMPLATES:
                continue
            inside = replace(around, path=f"{around.path}.{key}".lstrip("."))
            if key == _GROUP and isinstance(value, Mapping):
                yield from _group(value, inside, name, depth)
            else:
                yield from _walk(value, inside, name, depth + 1)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _walk(value, replace(around, path=f"{around.path}[{index}]"), name, depth + 1)


def _with_metadata(around: PodSpec, given: Any) -> PodSpec:
    if not isinstance(given, Mapping):
        return around
    kept = dict(around.metadata)
    for part in ("labels", "annotations"):
        if isinstance(given.get(part), Mapping):
            kept[part] = {**kept.get(part, {}), **given[part]}
    if isinstance(given.get("namespace"), str):
        kept["namespace"] = given["namespace"]
    return replace(around, metadata=kept)


def _group(template: Mapping[str, Any], around: PodSpec, name: str, depth: int) -> Iterator[PodSpec]:
    """The two templates of a LeaderWorkerSet; its controller gives each pod its place in the group.

    Without a leader's template the workers' one makes the leader too.
    """
    size = template.get("size")
    address = f"{name}-0.{name}.{around.metadata.get('namespace') or 'default'}"
    common = {"LWS_LEADER_ADDRESS": address, "LWS_GROUP_SIZE": str(size if isinstance(size, int) else 1)}
    for key, value in template.items():
        index = "1" if key == "workerTemplate" and template.get("leaderTemplate") else "0"
        labelled = _with_metadata(around, {"labels": {_INDEX_LABEL: index}})
        inside = replace(labelled, path=f"{around.path}.{key}", variables={**common, "LWS_WORKER_INDEX": index})
        yield from _walk(value, inside, name, depth + 2)
