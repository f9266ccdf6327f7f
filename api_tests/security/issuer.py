"""An identity provider on this machine: a real HTTP server with real keys, that can rotate, break and be taken away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from api_tests.planted import plant

AUDIENCE = "graphgate-tests"
Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_MAKERS: dict[str, Any] = {"RS": RSAAlgorithm, "PS": RSAAlgorithm, "ES": ECAlgorithm, "Ed": OKPAlgorithm}


def new_key(algorithm: str, bits: int = 2048) -> Private:
    """A private key for that signature."""
    if algorithm[:2] in ("RS", "PS"):
        return rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return ec.generate_private_key(ec.SECP256R1()) if algorithm[:2] == "ES" else ed25519.Ed25519PrivateKey.generate()


class Issuer:
    """``status`` is what it answers with; ``asked`` how often its keys were fetched."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.named = self.url
        self.status = 200
        self.asked = 0
        self.private: dict[str, tuple[str, Private]] = {}
        self.published: list[dict[str, Any]] = []
        self.add("first", "RS256")

    def add(self, kid: str, algorithm: str, *, bits: int = 2048, publish: bool = True, **members: Any) -> None:
        """A further key; ``members`` stand in its published form beside what must be there."""
        key = new_key(algorithm, bits)
        self.private[kid] = (algorithm, key)
        if publish:
            public = json.loads(_MAKERS[algorithm[:2]].to_jwk(key.public_key()))
            self.published.append({**public, "kid": kid, "use": "sig", **members})

    def rotate(self, kid: str, algorithm: str = "RS256") -> None:
        """Publish a new key alone."""
        self.published.clear()
        self.add(kid, algorithm)

    def token(self, kid: str = "first", *, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """A signed token; a claim of None is left out. It may be in no log."""
        algorithm, key = self.private[kid]
        token = jwt.encode(self.claims(**claims), key, algorithm, headers={"kid": kid, **(headers or {})})
        return plant(token)

    def claims(self, **claims: Any) -> dict[str, Any]:
        """What a token of it says, with these changes."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "jane", "iat": now, "exp": now + 300}
        whole = {**usual, "scope": "openid graphgate:validate", **claims}
        return {name: value for name, value in whole.items() if value is not None}


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """An issuer that answers until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            documents = {
                "/.well-known/openid-configuration": {"issuer": issuer.named, "jwks_uri": f"{issuer.url}/keys"},
                "/keys": {"keys": issuer.published},
            }
            issuer.asked += self.path == "/keys"
            body = json.dumps(documents.get(self.path, {})).encode()
            self.send_response(issuer.status if self.path in documents else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the test says what it saw."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
