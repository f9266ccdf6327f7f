"""The credential that a request carries."""

from __future__ import annotations

import re

from starlette.types import Scope

from service.security.refusal import Refused

LONGEST = 8192
_BEARER = re.compile(rb"bearer +([!-~]+) *", re.IGNORECASE)


def credential(scope: Scope) -> str:
    """The API key or token, from ``Authorization: Bearer`` or ``X-API-Key``.

    Raises:
        Refused: there is none, more than one, or one that cannot be read.
    """
    found: list[bytes] = []
    for name, value in scope["headers"]:
        if name == b"authorization":
            bearer = _BEARER.fullmatch(value)
            if bearer is None:
                raise Refused("malformed", "The header Authorization is not of the form `Bearer KEY`.")
            found.append(bearer[1])
        elif name == b"x-api-key":
            found.append(value.strip())
    if not found:
        raise Refused("missing", "Send an API key: `Authorization: Bearer gg_...`, or `X-API-Key: gg_...`.")
    if len(found) > 1:
        raise Refused("malformed", "The request carries more than one credential; send one.")
    if len(found[0]) > LONGEST or not found[0].isascii():
        raise Refused("malformed", f"The credential is longer than {LONGEST} characters, or not plain text.")
    return found[0].decode("ascii")
