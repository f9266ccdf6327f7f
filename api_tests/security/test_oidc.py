"""Tokens of an identity provider are taken where everything about them is right, and in no other case (OWASP API2)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization

from api_tests.security.guarded import Guarded, guarded_server
from api_tests.security.issuer import AUDIENCE, Issuer, running_issuer
from api_tests.service.launches import ACCEPTED
from service.security.jwks import check_address
from service.security.oidc import open_oidc
from service.settings import Settings, SettingsError

SHARED = base64.urlsafe_b64encode(b"what an issuer should not publish").decode()


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with running_issuer() as found:
        for algorithm in ("ES256", "PS256", "EdDSA"):
            found.add(algorithm, algorithm)
        found.add("small", "RS256", bits=1024)
        found.add("for encryption", "ES256", use="enc")
        found.add("declared", "RS256", alg="RS512")
        found.add("kept back", "EdDSA", publish=False)
        found.published.append({"kty": "oct", "kid": "shared", "k": SHARED})
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[Guarded]:
    with guarded_server(
        tmp_path_factory.mktemp("oidc") / "data",
        {"key": ("--scope", "validate")},
        GRAPHGATE_EMBEDDED_WORKER="off",
        GRAPHGATE_OIDC_ISSUER=issuer.url,
        GRAPHGATE_OIDC_AUDIENCE=AUDIENCE,
        GRAPHGATE_FAILURES="10000/minute",
    ) as found:
        yield found


@pytest.fixture
def client(guarded: Guarded) -> Iterator[httpx.Client]:
    with guarded.client() as found:
        yield found


def rules(client: httpx.Client, token: str) -> httpx.Response:
    return client.get("/v1/rules", headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize("kid", ["first", "ES256", "PS256", "EdDSA"])
def test_a_good_token_is_taken(client: httpx.Client, issuer: Issuer, kid: str) -> None:
    assert rules(client, issuer.token(kid)).status_code == 200


def test_an_api_key_is_taken_beside_it(guarded: Guarded) -> None:
    with guarded.client("key") as client:
        assert client.get("/v1/rules").status_code == 200


NOW = int(time.time())
WRONG: dict[str, dict[str, Any]] = {
    "expired": {"exp": NOW - 3600},
    "without expiry": {"exp": None},
    "not yet valid": {"nbf": NOW + 3600},
    "another audience": {"aud": "somebody-else"},
    "without audience": {"aud": None},
    "another issuer": {"iss": "https://issuer.example"},
    "without issuer": {"iss": None},
    "without subject": {"sub": None},
    "empty subject": {"sub": ""},
    "long subject": {"sub": "x" * 129},
    "control characters": {"sub": "a\nb"},
    "without issue time": {"iat": None},
}


@pytest.mark.parametrize("claims", WRONG.values(), ids=WRONG)
def test_a_claim_that_is_wrong_or_missing_is_refused(
    client: httpx.Client, issuer: Issuer, claims: dict[str, Any]
) -> None:
    answer = rules(client, issuer.token(**claims))
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")  # what signs here must not be taken there
@pytest.mark.parametrize("kid", ["small", "for encryption", "declared", "kept back"])
def test_a_key_that_is_not_for_this_is_refused(client: httpx.Client, issuer: Issuer, kid: str) -> None:
    assert rules(client, issuer.token(kid)).status_code == 401


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims))
    return ".".join(parts) + "."


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "HS256"])
def test_an_unsigned_token_is_refused(client: httpx.Client, issuer: Issuer, algorithm: str) -> None:
    assert rules(client, unsigned({"alg": algorithm, "kid": "first"}, issuer.claims())).status_code == 401


def signed_with_a_secret(claims: dict[str, Any], secret: bytes, kid: str) -> str:
    """By hand: the library refuses to do this, an attacker does not."""
    text = unsigned({"alg": "HS256", "kid": kid}, claims).removesuffix(".")
    made = hmac.digest(secret, text.encode(), hashlib.sha256)
    return f"{text}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"


def test_the_public_key_is_no_shared_secret(client: httpx.Client, issuer: Issuer) -> None:
    public = issuer.private["first"][1].public_key()
    for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER):
        known = public.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
        assert rules(client, signed_with_a_secret(issuer.claims(), known, "first")).status_code == 401
    shared = base64.urlsafe_b64decode(SHARED)
    assert rules(client, signed_with_a_secret(issuer.claims(), shared, "shared")).status_code == 401


def test_a_changed_token_is_refused(client: httpx.Client, issuer: Issuer) -> None:
    header, _, signature = issuer.token().split(".")
    claims = unsigned({}, issuer.claims(scope="graphgate:admin")).split(".")[1]
    answer = rules(client, f"{header}.{claims}.{signature}")
    assert answer.status_code == 401
    assert "signature is wrong" in answer.json()["detail"]


def test_a_header_that_must_be_understood_is_refused(client: httpx.Client, issuer: Issuer) -> None:
    assert rules(client, issuer.token(headers={"crit": ["exp"], "exp": 1})).status_code == 401


def test_scopes_are_those_of_the_token(client: httpx.Client, issuer: Issuer) -> None:
    bearer = {"Authorization": f"Bearer {issuer.token(scope='graphgate:validate')}"}
    assert client.get("/v1/captures", headers=bearer).status_code == 403
    bearer = {"Authorization": f"Bearer {issuer.token(scope=['graphgate:capture', 7, 'admin'])}"}
    assert client.get("/v1/captures", headers=bearer).status_code == 200
    assert client.get("/v1/audit", headers=bearer).status_code == 403
    bearer = {"Authorization": f"Bearer {issuer.token(scope={'graphgate:admin': True})}"}
    assert client.get("/v1/rules", headers=bearer).status_code == 403


def test_a_subject_owns_what_it_makes(client: httpx.Client, issuer: Issuer) -> None:
    jane, joe = ({"Authorization": f"Bearer {issuer.token(sub=name)}"} for name in ("jane", "joe"))
    made = client.post("/v1/validations", json=ACCEPTED, headers=jane).json()["id"]
    assert client.get(f"/v1/validations/{made}", headers=jane).status_code == 200
    assert client.get(f"/v1/validations/{made}", headers=joe).status_code == 404


def test_keys_are_the_issuer_s_own_kept_and_fetched_again_when_new_but_not_for_every_name(tmp_path: Path) -> None:
    with (
        running_issuer() as issuer,
        guarded_server(
            tmp_path,
            {},
            GRAPHGATE_EMBEDDED_WORKER="off",
            GRAPHGATE_OIDC_ISSUER=issuer.url,
            GRAPHGATE_OIDC_AUDIENCE=AUDIENCE,
            GRAPHGATE_OIDC_SCOPE_CLAIM="realm_access.roles",
            GRAPHGATE_OIDC_SCOPES="reader=validate",
        ) as guarded,
        guarded.client() as client,
    ):
        roles: dict[str, Any] = {"scope": None, "realm_access": {"roles": ["reader"]}}
        issuer.status = 503
        unavailable = rules(client, issuer.token(**roles))
        assert (unavailable.status_code, unavailable.json()["type"]) == (503, "/problems/identity-provider-unavailable")
        assert int(unavailable.headers["retry-after"]) > 0
        issuer.status = 200
        issuer.named = "https://issuer.example"
        assert rules(client, issuer.token(**roles)).status_code == 503, "keys of an issuer of another name"
        assert "issuer.example" in guarded.server.log.read_text()
        issuer.named = issuer.url
        assert [rules(client, issuer.token(**roles)).status_code for _ in range(3)] == [200] * 3
        assert issuer.asked == 1, "kept"
        before = issuer.token(**roles)
        issuer.rotate("second")
        assert rules(client, issuer.token("second", **roles)).status_code == 200
        assert issuer.asked == 2, "fetched for the new key"
        assert rules(client, before).status_code == 401, "the old key is not published any more"
        for number in range(20):
            issuer.add(f"strange {number}", "EdDSA", publish=False)
            assert rules(client, issuer.token(f"strange {number}", **roles)).status_code == 401
        assert issuer.asked <= 6, "unknown names do not make it fetch without end"
        issuer.status = 503
        assert rules(client, issuer.token("second", **roles)).status_code == 200, "kept while the provider is away"


@pytest.mark.parametrize("address", ["http://issuer.example", "ftp://127.0.0.1", "issuer.example", "https://"])
def test_an_issuer_must_be_an_address_that_nobody_can_change_on_the_way(address: str) -> None:
    with pytest.raises(ValueError, match="https"):
        check_address(address, "GRAPHGATE_OIDC_ISSUER")


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"oidc_issuer": "https://issuer.example"}, "GRAPHGATE_OIDC_AUDIENCE"),
        ({"oidc_issuer": "http://issuer.example", "oidc_audience": "a"}, "GRAPHGATE_OIDC_ISSUER"),
        ({"oidc_issuer": "https://i.example", "oidc_audience": "a", "oidc_scopes": "x=root"}, "GRAPHGATE_OIDC_SCOPES"),
        ({"oidc_issuer": "https://i.example", "oidc_audience": "a", "oidc_scopes": "=admin"}, "GRAPHGATE_OIDC_SCOPES"),
    ],
)
def test_settings_that_cannot_be_used_name_their_variable(settings: dict[str, Any], names: str) -> None:
    with pytest.raises(SettingsError, match=names):
        open_oidc(Settings(**settings))
