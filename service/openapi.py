"""The OpenAPI document: what the framework writes, with problems in place of the framework's own error form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from service.declaring import declare_manners
from service.linking import declare_links
from service.security.declaring import declare_security

_FRAMEWORK = ("HTTPValidationError", "ValidationError")
_REPLACED = tuple(f"/{name}" for name in (*_FRAMEWORK, "ProblemOut"))


def with_problems(write: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """A writer of the document that calls the framework's ``write`` once and corrects what it made."""
    kept: dict[str, Any] = {}

    def document() -> dict[str, Any]:
        if not kept:
            made = write()
            for name in _FRAMEWORK:
                made["components"]["schemas"].pop(name, None)
            for operations in made["paths"].values():
                for operation in operations.values():
                    for response in operation["responses"].values():
                        _correct(response)
            declare_security(made)
            declare_manners(made)
            declare_links(made)
            kept.update(made)
        return kept

    return document


def _correct(response: dict[str, Any]) -> None:
    for schema in [content.get("schema", {}) for content in response.get("content", {}).values()]:
        if schema.get("$ref", "").endswith(_REPLACED):
            form = {"schema": {"$ref": "#/components/schemas/ProblemOut"}}
            response["content"] = {"application/problem+json": form}
            response["description"] = "A problem (RFC 9457)"
