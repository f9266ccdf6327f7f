"""Links in the OpenAPI document: which answer's id leads to which further address."""

from __future__ import annotations

from typing import Any

_LINKS: dict[tuple[str, str, str], dict[str, tuple[str, str]]] = {
    ("/v1/validations", "post", "200"): {"validation": ("/v1/validations/{id}", "get")},
    ("/v1/captures", "post", "202"): {
        "capture": ("/v1/captures/{id}", "get"),
        "events": ("/v1/captures/{id}/events", "get"),
        "cancel": ("/v1/captures/{id}", "delete"),
    },
}
"""By address, method and status of the answer: name of the link, and the operation that takes the answer's ``id``."""


def declare_links(document: dict[str, Any]) -> None:
    """Add them to the document."""
    for (path, method, status), links in _LINKS.items():
        document["paths"][path][method]["responses"][status]["links"] = {
            name: {
                "operationId": document["paths"][target][verb]["operationId"],
                "parameters": {"id": "$response.body#/id"},
            }
            for name, (target, verb) in links.items()
        }
