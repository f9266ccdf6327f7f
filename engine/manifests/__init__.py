"""SGLang launches in Kubernetes manifests and compose files, with where each stands.

Nothing is fetched or run. A container's command and arguments are joined and expanded as the kubelet does it; a shell
script in them is read by :mod:`engine.launch_command`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.errors import InvalidLaunch
from engine.manifests.compose import compose_launches, is_compose
from engine.manifests.found import FoundLaunch
from engine.manifests.kubernetes import kubernetes_launches
from engine.manifests.launching import Silence, launch_of

MAX_CHARACTERS = 4_000_000

__all__ = ["FoundLaunch", "Silence", "launch_of", "launches_in", "launches_in_documents"]


def launches_in(text: str, *, name: str = "manifest") -> tuple[FoundLaunch, ...]:
    """Every launch in a YAML or JSON text of one or more documents, in order.

    Raises:
        InvalidLaunch: the text is no YAML, or is too large.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidLaunch(f"{name} is larger than {MAX_CHARACTERS} characters.", remedy="Split it.", field=name)
    import yaml  # only manifests need it, and it is slow to import

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.load_all(text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "unreadable"
        raise InvalidLaunch(f"{name} is not YAML: {problem}{where}.", remedy="Mend the file.", field=name) from None
    except (RecursionError, ValueError) as error:
        raise InvalidLaunch(f"{name} cannot be read: {type(error).__name__}.", field=name) from None
    return tuple(launches_in_documents(documents))


def launches_in_documents(documents: list[Any]) -> Iterator[FoundLaunch]:
    """Every launch in parsed documents."""
    for index, document in enumerate(documents):
        if isinstance(document, Mapping):
            where = f"[{index}]" if len(documents) > 1 else ""
            found = compose_launches(document, where) if is_compose(document) else kubernetes_launches(document, where)
            yield from found
