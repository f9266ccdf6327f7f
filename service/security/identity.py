"""Who is asking: what access control found out about a request, for the routes and everything behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from fastapi import Depends, Request

Scope = Literal["validate", "capture", "worker", "admin"]
"""What a key may do: ask for verdicts, have captures run, see and register workers, and everything."""

SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who is asking, and what they may do.

    ``id`` names the credential (``key:PREFIX``, ``oidc:SUBJECT``): rates, quotas and idempotency keys are kept apart by
    it. ``owner`` is in every object that is made (``created_by``), and is the same for keys of one name, so that a
    key can be replaced; None where nobody has to say who they are. ``rate`` is as ``10/second``, ``gpu_seconds`` per
    day (UTC); None: no limit.
    """

    id: str
    owner: str | None
    name: str
    scopes: frozenset[Scope]
    rate: str | None = None
    gpu_seconds: int | None = None

    def may(self, scope: Scope) -> bool:
        """Whether the scope is held; ``admin`` holds them all."""
        return scope in self.scopes or "admin" in self.scopes

    def sees(self, created_by: str | None) -> bool:
        """Whether an object of that owner may be seen: one's own, or any with ``admin``."""
        return "admin" in self.scopes or (created_by is not None and created_by == self.owner)

    @property
    def only(self) -> str | None:
        """The one owner whose objects a list shows; None: everybody's."""
        return None if "admin" in self.scopes else self.owner


EVERYBODY = Identity(id="everybody", owner=None, name="everybody", scopes=frozenset(SCOPES))
"""Who is asking where access control is off."""

NOBODY = Identity(id="nobody", owner=None, name="nobody", scopes=frozenset())
"""Who is asking at an address that needs no credentials."""


def identity_of(scope: Mapping[str, Any]) -> Identity:
    """The identity that access control put into the state of the request with this ASGI scope."""
    found = scope.get("state", {}).get("identity")
    if not isinstance(found, Identity):
        raise TypeError("the request did not pass access control")
    return found


async def caller(request: Request) -> Identity:
    """Who is asking, for a route."""
    return identity_of(request.scope)


Caller = Annotated[Identity, Depends(caller)]
"""A route's parameter of this type is who is asking."""
