"""Access control in the OpenAPI document: how to say who asks, and the scope that each operation needs."""

from __future__ import annotations

from typing import Any

from service.security.scopes import ADDRESSES, OPEN

_SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`gg_...`), or a token of the identity provider where one is configured. "
        "Not asked for where access control is off, as it is by default on the loopback interface.",
    },
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key (`gg_...`)."},
}
_NOT_LOCAL = {
    "description": "A problem (RFC 9457): without access control only loopback names are answered",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemOut"}}},
}
_HEADERS = {
    "401": {"WWW-Authenticate": "How to say who asks (RFC 6750)."},
    "429": {"Retry-After": "Seconds to wait."},
}


def declare_security(document: dict[str, Any]) -> None:
    """Write the schemes, and with each operation the role it needs (``[]``: none), into the document."""
    document["components"]["securitySchemes"] = _SCHEMES
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            needed = ADDRESSES.get((method.upper(), path), "admin")
            operation["security"] = [] if needed == OPEN else [{name: [needed]} for name in _SCHEMES]
            operation["responses"]["421"] = _NOT_LOCAL
            for status, names in _HEADERS.items():
                if status in operation["responses"]:
                    operation["responses"][status]["headers"] = {
                        name: {"description": text, "schema": {"type": "string"}} for name, text in names.items()
                    }
