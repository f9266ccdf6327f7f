"""API keys: how they are made, taken apart and compared.

A key is ``gg_PREFIX_SECRET``. The prefix names it in lists and logs; the secret has 256 random bits. What is kept is
the SHA-256 of the whole key. A slow hash (bcrypt, Argon2) protects what people choose, because it can be guessed; 256
random bits cannot be, at any speed, and a slow hash on every request would only help who wants to overload the service.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
PREFIX_LENGTH = 8
FORM = re.compile(rf"gg_([{_LETTERS}]{{{PREFIX_LENGTH}}})_[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was made just now: the only moment in which ``text`` is known."""

    text: str
    prefix: str

    @property
    def digest(self) -> str:
        """What is kept of it."""
        return digest_of(self.text)


def make_key() -> NewKey:
    """A new key, from the operating system's random numbers."""
    prefix = "".join(secrets.choice(_LETTERS) for _ in range(PREFIX_LENGTH))
    return NewKey(f"gg_{prefix}_{secrets.token_urlsafe(32)}", prefix)


def prefix_of(text: str) -> str | None:
    """The prefix; None where the text has not the form of a key."""
    found = FORM.fullmatch(text)
    return found and found[1]


def digest_of(text: str) -> str:
    """SHA-256 of the key, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def same(digest: str, other: str) -> bool:
    """Whether two digests are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(digest, other)
