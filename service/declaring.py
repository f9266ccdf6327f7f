"""What holds for many addresses alike, in the OpenAPI document: idempotency keys, entity tags, versions by name."""

from __future__ import annotations

from typing import Any

from service.conditional import ADDRESSES as CONDITIONAL
from service.idempotency import ADDRESSES as KEYED
from service.media import MEDIA_TYPE

_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A name for this request, such as a UUID. Sent again with the same name and body, it has its "
    "first answer again, with the header Idempotency-Replayed, and happens once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
_KEY_PROBLEMS = ("400", "409", "422")
_TAG = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "Entity tags that the caller has; 304 where the answer has one of them.",
    "schema": {"type": "string"},
}
_UNCHANGED = {"description": "The caller has this answer already"}
_PROBLEM = {
    "description": "A problem (RFC 9457)",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemOut"}}},
}


def declare_manners(document: dict[str, Any]) -> None:
    """Add them to the document."""
    for path, operations in document["paths"].items():
        if not path.startswith("/v1/"):
            continue
        for method, operation in operations.items():
            responses = operation["responses"]
            if method == "post" and path in KEYED:
                operation.setdefault("parameters", []).append(_KEY)
                for status in _KEY_PROBLEMS:
                    responses.setdefault(status, _PROBLEM)
            if method == "get" and path in CONDITIONAL:
                operation.setdefault("parameters", []).append(_TAG)
                responses["304"] = _UNCHANGED
            responses["406"] = _PROBLEM
            for response in responses.values():
                content = response.get("content", {})
                if "application/json" in content:
                    content[MEDIA_TYPE] = content["application/json"]
            operation["responses"] = dict(sorted(responses.items()))
