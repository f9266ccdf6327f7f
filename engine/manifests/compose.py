"""Launches in compose files: each service's entrypoint and command, as compose splits and joins them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from engine.manifests.commands import found_launch
from engine.manifests.found import FoundLaunch
from engine.manifests.images import release_of


def is_compose(document: Mapping[str, Any]) -> bool:
    """Whether a document is a compose file: it has services and no Kubernetes kind."""
    return isinstance(document.get("services"), Mapping) and "kind" not in document and "apiVersion" not in document


def compose_launches(document: Mapping[str, Any], where: str = "") -> Iterator[FoundLaunch]:
    """Every service that starts an engine."""
    for name, service in document["services"].items():
        if not isinstance(service, Mapping):
            continue
        unknown: set[str] = set()
        environment = _environment(service.get("environment"))
        words = [_interpolated(word, unknown) for key in ("entrypoint", "command") for word in _words(service.get(key))]
        place = FoundLaunch(
            owner=f"service {name}",
            container=str(name),
            path=f"{where}.services.{name}".lstrip("."),
            release=release_of(_interpolated(str(service.get("image")), set())),
            gpu_count=_gpus(service),
            unknown=tuple(sorted(unknown)),
        )
        found = found_launch(words, environment, place, image=service.get("image"))
        if found is not None:
            yield found


_VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*):?-([^}]*)\}|\$\{[A-Za-z_][^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*")


def _interpolated(word: str, unknown: set[str]) -> str:
    """``${NAME:-default}`` with its default, since the caller's environment is not known; ``$$`` is one dollar sign.

    What has no default stays, and is put into ``unknown``.
    """

    def value(match: re.Match[str]) -> str:
        whole = match.group(0)
        if whole == "$$":
            return "$"
        if match.group(1) is None:
            unknown.add(whole)
            return whole
        return match.group(2)

    return _VARIABLE.sub(value, word)


def _words(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(word) for word in value]
    if isinstance(value, str):
        try:
            return shlex.split(value)
        except ValueError:
            return value.split()
    return []


def _environment(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {str(name): _interpolated(_text(text), set()) for name, text in value.items() if text is not None}
    pairs = [str(entry).partition("=") for entry in value] if isinstance(value, list) else []
    return {name: _interpolated(text, set()) for name, equals, text in pairs if equals}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _gpus(service: Mapping[str, Any]) -> int | None:
    node: Any = service
    for key in ("deploy", "resources", "reservations", "devices"):
        node = node.get(key) if isinstance(node, Mapping) else None
    for device in node if isinstance(node, list) else []:
        if isinstance(device, Mapping) and "gpu" in (device.get("capabilities") or ()):
            count = device.get("count")
            if isinstance(count, int) and not isinstance(count, bool):
                return count
            identifiers = device.get("device_ids")
            if isinstance(identifiers, list):
                return len(identifiers)
    return None
