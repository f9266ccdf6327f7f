"""Which scope each address needs: one row an address. An address without a row needs ``admin``, and fails a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import Scope as Asgi

from service.security.identity import Scope

OPEN: Literal["open"] = "open"
Needed = Scope | Literal["open"]

ADDRESSES: dict[tuple[str, str], Needed] = {
    ("GET", "/livez"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/metrics"): "admin",
    ("GET", "/problems"): OPEN,
    ("GET", "/problems/{slug}"): OPEN,
    ("GET", "/v1/openapi.json"): OPEN,
    ("POST", "/v1/validations"): "validate",
    ("POST", "/v1/validations/batch"): "validate",
    ("GET", "/v1/validations"): "validate",
    ("GET", "/v1/validations/{id}"): "validate",
    ("POST", "/v1/comparisons"): "validate",
    ("POST", "/v1/admission"): "validate",
    ("GET", "/v1/models/{org}/{name}"): "validate",
    ("GET", "/v1/rules"): "validate",
    ("GET", "/v1/rules/{id}"): "validate",
    ("GET", "/v1/releases"): "validate",
    ("GET", "/v1/gpus"): "validate",
    ("POST", "/v1/captures"): "capture",
    ("GET", "/v1/captures"): "capture",
    ("GET", "/v1/captures/{id}"): "capture",
    ("GET", "/v1/captures/{id}/events"): "capture",
    ("DELETE", "/v1/captures/{id}"): "capture",
    ("GET", "/v1/workers"): "worker",
    ("GET", "/v1/quota"): "capture",
    ("GET", "/v1/audit"): "admin",
}
"""HEAD needs what GET needs; OPTIONS is open: it says nothing but the methods."""

OPENED = {"metrics": ("GET", "/metrics"), "admission": ("POST", "/v1/admission")}
"""What the setting GRAPHGATE_OPEN can open to everybody, by the name that it has there."""


class ScopeTable:
    """Finds the row of a request. Templates are compiled as the router compiles them, so both read a path alike."""

    def __init__(self, routes: Iterable[BaseRoute], opened: Iterable[str] = ()) -> None:
        self._routes = list(routes)
        rows = ADDRESSES | {OPENED[name]: OPEN for name in opened}
        self._plain = {(method, path): needed for (method, path), needed in rows.items() if "{" not in path}
        self._others = [
            (method, compile_path(path)[0], needed) for (method, path), needed in rows.items() if "{" in path
        ]

    def needed(self, scope: Asgi) -> Needed | None:
        """The scope; None where no address takes the request, which then ends as 404 or 405."""
        method, path = scope["method"], scope["path"]
        found = self._plain.get((method, path))
        if found is not None:
            return found
        for verb, pattern, needed in self._others:
            if verb == method and pattern.match(path):
                return needed
        taken = any(route.matches(scope)[0] is Match.FULL for route in self._routes)
        return "admin" if taken else None
