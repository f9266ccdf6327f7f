"""TLS: certificate and key from two files, and a renewed pair taken up without a restart."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pydantic import Field
from pydantic_settings import BaseSettings

from engine.errors import GraphgateError

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2, the oldest that is spoken; TLS 1.3 has suites of its own."""

_log = logging.getLogger("graphgate.tls")


class TlsError(GraphgateError):
    """A certificate or key that cannot be used; the message says which and why."""


class TlsSettings(BaseSettings):
    """``tls_cert`` is a file with the certificate and those that lead to its authority, ``tls_key`` one with its key;
    every ``tls_reload_s`` seconds they are looked at, and taken up where they have changed."""

    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_reload_s: float = Field(default=10.0, gt=0)


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its key."""

    cert: Path
    key: Path

    def digest(self) -> bytes:
        """Of what both files hold at this moment.

        Raises:
            TlsError: one cannot be read.
        """
        try:
            return hashlib.sha256(self.cert.read_bytes() + b"\0" + self.key.read_bytes()).digest()
        except OSError as error:
            raise TlsError(f"{error.filename} cannot be read: {error.strerror}.") from None

    def load(self, context: ssl.SSLContext) -> None:
        """Serve with them from the next handshake on. Where that fails, the context can be used no more.

        Raises:
            TlsError: they cannot be used.
        """

        def no_password() -> NoReturn:
            raise TlsError(f"{self.key} is encrypted, and nobody is there to type its password.")

        try:
            context.load_cert_chain(self.cert, self.key, password=no_password)
        except ssl.SSLError as error:
            why = "the key is not the certificate's" if "MISMATCH" in (error.reason or "") else "they are no PEM files"
            raise TlsError(f"{self.cert} and {self.key} cannot be used: {why}.") from None
        except OSError as error:
            raise TlsError(f"{self.cert} and {self.key} cannot be read: {error.strerror}.") from None


@dataclass(frozen=True, slots=True)
class Tls:
    """What is served with: the files, the context that they are loaded into, how often they are looked at."""

    pair: Pair
    context: ssl.SSLContext
    every_s: float

    def made(self, *_: object) -> ssl.SSLContext:
        """The context, for the web server."""
        return self.context

    async def renew(self) -> None:
        """Take up the files whenever they change, until cancelled. A pair that cannot be used is said so, once, and the
        one before stays."""
        served = self.pair.digest()
        while True:
            await asyncio.sleep(self.every_s)
            try:
                found = self.pair.digest()
                if found == served:
                    continue
                served = found
                self.pair.load(_context())  # one that nobody serves with
                self.pair.load(self.context)
            except TlsError as error:
                _log.error("the renewed certificate cannot be used; the one before is kept: %s", error)
                continue
            _log.info("a renewed certificate is served", extra={"certificate": str(self.pair.cert)})


def open_tls(settings: TlsSettings) -> Tls | None:
    """What the settings say; None where it is plain HTTP.

    Raises:
        TlsError: one file is named without the other, or they cannot be used.
    """
    if settings.tls_cert is None and settings.tls_key is None:
        return None
    if settings.tls_cert is None or settings.tls_key is None:
        raise TlsError("A certificate and its key belong together: one is named, the other is not.")
    tls = Tls(Pair(settings.tls_cert, settings.tls_key), _context(), settings.tls_reload_s)
    tls.pair.digest()
    tls.pair.load(tls.context)
    return tls


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    return context
