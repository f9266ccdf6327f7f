"""Answers that do not change: with an entity tag, and 304 for whoever has them already (RFC 9110, section 13)."""

from __future__ import annotations

import hashlib
import re

from starlette.requests import Request
from starlette.responses import Response

ADDRESSES = frozenset(
    {
        *("/v1/validations/{id}", "/v1/captures/{id}", "/v1/models/{org}/{name}"),
        *("/v1/rules", "/v1/rules/{id}", "/v1/releases", "/v1/gpus"),
    }
)
"""Addresses of the API that answer so; a capture's does once the capture has ended."""

_TAG = re.compile(r'(?:W/)?("[^"]*")')
_CACHING = {"Cache-Control": "private, no-cache", "Vary": "Accept, Authorization, X-API-Key"}
"""May be kept by the caller, who asks before using it again: it may be deleted, or be no longer theirs to see."""


def tag_of(body: bytes) -> str:
    """The entity tag of these bytes."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def unchanging(request: Request, body: bytes, *, tag: str | None = None, media: str = "application/json") -> Response:
    """The body with its tag (made from the body where none is given), or 304 where the request names that tag."""
    tag = tag or tag_of(body)
    headers = {"ETag": tag, **_CACHING}
    if has_it(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=media)


def has_it(request: Request, tag: str) -> bool:
    """Whether ``If-None-Match`` names the tag. Weak tags match as well, as that header has it."""
    given = request.headers.getlist("if-none-match")
    if not given:
        return False
    named = ", ".join(given).strip()
    return named == "*" or tag in _TAG.findall(named)
