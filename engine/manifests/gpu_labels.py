"""Which GPU a pod's node selection names, and whether it asks for a device of another kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_SHARED = "-SHARED"
"""What the device plugin puts behind a product that pods share in time."""


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads((Path(__file__).parent / "gpu_labels.json").read_text(encoding="utf-8"))
    return table


def _labels() -> Mapping[str, Mapping[str, str]]:
    rows: Mapping[str, Mapping[str, str]] = _table()["labels"]
    return rows


def other_device(container: Mapping[str, Any]) -> str | None:
    """The resource, or the part of the image's tag, that says that the container runs on another kind of device."""
    asked = container.get("resources")
    for part in ("limits", "requests"):
        amounts = asked.get(part) if isinstance(asked, Mapping) else None
        for name in amounts if isinstance(amounts, Mapping) else ():
            if name in _table()["other_resources"]:
                return str(name)
    image = container.get("image")
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2] if isinstance(image, str) else ""
    return next((mark for mark in _table()["other_tags"] if mark in tag), None)


def selected_gpu(spec: Mapping[str, Any]) -> str | None:
    """The GPU that the pod's nodeSelector, or its required node affinity, names; None where they leave it open."""
    selector = spec.get("nodeSelector")
    if isinstance(selector, Mapping):
        for label, names in _labels().items():
            value = selector.get(label)
            if isinstance(value, str):
                return _named(value, names)
    affinity = _below(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = affinity.get("nodeSelectorTerms") if isinstance(affinity, Mapping) else None
    products = [set(_products(term)) for term in terms] if isinstance(terms, list) else []
    named = set().union(*products)
    return named.pop() if len(named) == 1 and all(products) else None  # each term may be the one that is taken


def _products(term: Any) -> Iterator[str]:
    expressions = term.get("matchExpressions") if isinstance(term, Mapping) else None
    for expression in expressions if isinstance(expressions, list) else []:
        if isinstance(expression, Mapping) and expression.get("operator") == "In":
            names = _labels().get(str(expression.get("key")))
            values = expression.get("values")
            if names is not None and isinstance(values, list):
                yield from (_named(str(value), names) for value in values)


def _named(value: str, names: Mapping[str, str]) -> str:
    return names.get(value) or value.removesuffix(_SHARED)


def _below(node: Any, *keys: str) -> Any:
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node
