"""Bearer tokens of an identity provider (OpenID Connect): whose they are, and what they open here.

Only signatures that need the provider's private key are taken: never ``none``, never HMAC, where the public key would
be the secret. Issuer, audience, expiry and subject must be there and right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jwt
from jwt import PyJWK

from service.security.identity import SCOPES, Identity, Scope
from service.security.jwks import ProviderKeys, ProviderUnavailable, check_address
from service.security.refusal import Refused
from service.settings import Settings, SettingsError

ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""Which signatures a kind of key may make."""

LEEWAY_S = 30
_SMALLEST_RSA = 2048
_REQUIRED = ("exp", "iat", "iss", "aud", "sub")

__all__ = ["ALGORITHMS", "Oidc", "ProviderUnavailable", "open_oidc"]


class Oidc:
    """Checks tokens of one issuer for one audience. ``mapping``: from a name in the scope claim to a scope here."""

    def __init__(self, settings: Settings, mapping: Mapping[str, Scope]) -> None:
        self._issuer = settings.oidc_issuer or ""
        self._audience = settings.oidc_audience or ""
        self._claim = settings.oidc_scope_claim
        self._mapping = mapping
        self._rate = settings.rate
        self._gpu_seconds = settings.gpu_seconds
        self._keys = ProviderKeys(self._issuer)

    async def identity(self, token: str) -> Identity:
        """Whose token it is.

        Raises:
            Refused: it is not good here.
            ProviderUnavailable: nobody can say, because the provider's keys cannot be fetched.
        """
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise Refused("malformed", "The bearer token is neither an API key (gg_...) nor a signed JWT.") from None
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in {name for names in ALGORITHMS.values() for name in names} or "crit" in header:
            known = ", ".join(name for names in ALGORITHMS.values() for name in names)
            raise Refused("token", f"The token's header asks for what is not taken here; signatures: {known}.")
        key = await self._keys.find(str(kid) if kid is not None else None)
        if key is None:
            raise Refused("token", "The token is signed with a key that the identity provider does not publish.")
        claims = self._claims(token, key, str(algorithm))
        subject = str(claims["sub"])
        if not 0 < len(subject) <= 128 or not subject.isprintable():
            raise Refused("token", "The token's subject is empty, longer than 128 characters, or not printable.")
        return Identity(
            id=f"oidc:{subject}",
            owner=f"oidc:{subject}",
            name=subject,
            scopes=frozenset(self._scopes(claims)),
            rate=self._rate,
            gpu_seconds=self._gpu_seconds,
        )

    def _claims(self, token: str, key: PyJWK, algorithm: str) -> dict[str, Any]:
        allowed = ALGORITHMS.get(key.key_type or "", ())
        declared = key._jwk_data.get("alg")
        if algorithm not in allowed or (declared is not None and declared != algorithm):
            raise Refused("token", "The token's signature is not of the kind that its key makes.")
        if key.key_type == "RSA" and key.key.key_size < _SMALLEST_RSA:
            raise Refused("token", f"The token's RSA key is smaller than {_SMALLEST_RSA} bits.")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_S,
                options={"require": list(_REQUIRED)},
            )
        except jwt.ExpiredSignatureError:
            raise Refused("expired", "The token has expired.") from None
        except jwt.PyJWTError as error:
            raise Refused("token", f"The token is not good here: {_words(error)}.") from None
        return claims

    def _scopes(self, claims: Mapping[str, Any]) -> Iterable[Scope]:
        value: Any = claims
        for part in self._claim.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        names = value.split() if isinstance(value, str) else value if isinstance(value, list) else ()
        return (self._mapping[name] for name in names if isinstance(name, str) and name in self._mapping)


def _words(error: jwt.PyJWTError) -> str:
    """What the library says, where that is a sentence of its own and nothing of the token."""
    kinds = {
        jwt.InvalidSignatureError: "its signature is wrong",
        jwt.InvalidAudienceError: "it is for another audience",
        jwt.InvalidIssuerError: "it is of another issuer",
        jwt.ImmatureSignatureError: "it is not valid yet",
        jwt.MissingRequiredClaimError: f"it must have the claims {', '.join(_REQUIRED)}",
    }
    return next((words for kind, words in kinds.items() if isinstance(error, kind)), "it cannot be read")


def open_oidc(settings: Settings) -> Oidc | None:
    """The checker that the settings ask for; None where they name no issuer.

    Raises:
        SettingsError: a setting is missing or cannot be understood.
    """
    if not settings.oidc_issuer:
        return None
    if not settings.oidc_audience:
        raise SettingsError("GRAPHGATE_OIDC_AUDIENCE: name the audience that tokens for this service carry.")
    try:
        check_address(settings.oidc_issuer, "GRAPHGATE_OIDC_ISSUER")
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return Oidc(settings, _mapping(settings.oidc_scopes))


def _mapping(text: str) -> dict[str, Scope]:
    """``reader=validate,runner=capture`` as a mapping.

    Raises:
        SettingsError: it is none, or names a scope that there is not.
    """
    found: dict[str, Scope] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, meant = part.rpartition("=")
        scope = next((scope for scope in SCOPES if scope == meant.strip()), None)
        if not name or scope is None:
            raise SettingsError(
                f"GRAPHGATE_OIDC_SCOPES: {part[:80]!r} is not NAME=SCOPE with a scope of {', '.join(SCOPES)}."
            )
        found[name.strip()] = scope
    return found
