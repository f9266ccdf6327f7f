"""The keys of an identity provider: fetched where its discovery document says, kept, fetched again on rotation."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from typing import Any
from urllib.parse import urlsplit

import httpx
from jwt import PyJWK, PyJWTError

from service.security.mode import is_loopback

FRESH_S = 3600.0
_KEPT_S = 24 * 3600.0
_WAIT_S = 5.0
_LARGEST = 512 * 1024
_FETCHES = 6
_PER_S = 60.0
_log = logging.getLogger("graphgate.oidc")


class ProviderUnavailable(Exception):
    """The provider's keys cannot be fetched, and none are at hand."""


class ProviderKeys:
    """The signing keys of one issuer, by ``kid``.

    They are fetched at the first use, after an hour, and when a token names a key that is not there; at most six times
    a minute, whatever tokens name. While the provider does not answer, the keys that were fetched last are good for a
    day more.
    """

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys: dict[str, PyJWK] = {}
        self._fetched = float("-inf")
        self._tried: deque[float] = deque(maxlen=_FETCHES)
        self._lock = asyncio.Lock()

    async def find(self, kid: str | None) -> PyJWK | None:
        """The key of that id, or the only key where the token names none; None where there is no such key.

        Raises:
            ProviderUnavailable: no keys are at hand.
        """
        found = self._pick(kid)
        if found is not None and time.monotonic() - self._fetched < FRESH_S:
            return found
        async with self._lock:
            if self._pick(kid) is None or time.monotonic() - self._fetched >= FRESH_S:
                await self._refresh()
        return self._pick(kid)

    def _pick(self, kid: str | None) -> PyJWK | None:
        if kid is not None:
            return self._keys.get(kid)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    async def _refresh(self) -> None:
        at = time.monotonic()
        if len(self._tried) == _FETCHES and at - self._tried[0] < _PER_S:
            why: object = f"asked {_FETCHES} times within {_PER_S:g} s already"
        else:
            self._tried.append(at)
            try:
                async with asyncio.timeout(_WAIT_S):
                    self._keys = await self._fetch()
                self._fetched = time.monotonic()
                return
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:
                why = f"{type(error).__name__}: {error}"
                _log.warning("the identity provider's keys cannot be fetched: %s", why)
        if not self._keys or at - self._fetched > _KEPT_S:
            raise ProviderUnavailable(f"The keys of {self._issuer} cannot be fetched ({why}).")

    async def _fetch(self) -> dict[str, PyJWK]:
        trust_env = not is_loopback(urlsplit(self._issuer).hostname or "")
        async with httpx.AsyncClient(timeout=_WAIT_S, follow_redirects=False, trust_env=trust_env) as client:
            discovered = await _document(client, f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
            if discovered.get("issuer") != self._issuer:
                raise ValueError(f"the discovery document is of the issuer {str(discovered.get('issuer'))[:200]!r}")
            address = str(discovered.get("jwks_uri"))
            check_address(address, "jwks_uri")
            entries = (await _document(client, address)).get("keys")
        if not isinstance(entries, list):
            raise ValueError("the key document holds no list `keys`")
        return dict(pair for pair in map(_signing_key, entries) if pair is not None)


def check_address(address: str, what: str) -> None:
    """Make sure that nobody on the way can change what is fetched.

    Raises:
        ValueError: neither https nor on this machine.
    """
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or not is_loopback(parts.hostname or ""):
        raise ValueError(f"{what} is {address[:200]!r}; it must be an https address")


async def _document(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    async with client.stream("GET", address, headers={"Accept": "application/json"}) as answer:
        if answer.status_code != 200:
            raise ValueError(f"{address} answered {answer.status_code}")
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > _LARGEST:
                raise ValueError(f"{address} answered with more than {_LARGEST} bytes")
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError(f"{address} answered with no JSON object")
    return found


def _signing_key(entry: object) -> tuple[str, PyJWK] | None:
    """The key under its id, where it is a public key for signatures; others are passed over, as RFC 7517 says."""
    if not isinstance(entry, dict) or entry.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    if entry.get("use", "sig") != "sig" or "verify" not in entry.get("key_ops", ["verify"]):
        return None
    try:
        return str(entry.get("kid", "")), PyJWK.from_dict(entry)
    except (PyJWTError, ValueError, TypeError, KeyError):
        _log.warning("a key of the identity provider is passed over", extra={"kid": str(entry.get("kid"))[:80]})
        return None
