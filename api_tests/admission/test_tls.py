"""HTTPS with certificates of a real authority, and their renewal under a running server."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import httpx
import pytest

from api_tests.admission.authority import Authority, Secret
from api_tests.admission.https import serial, serving, trusting
from api_tests.admission.reviews import ask, review
from api_tests.admission.test_reviews import FULL, pod
from api_tests.cli.command import graphgate
from service.tls import TlsError, TlsSettings, open_tls


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def until(log: Path, text: str) -> None:
    end = time.monotonic() + 30
    while text not in log.read_text():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)


def test_a_review_over_https_and_a_renewal_under_way(authority: Authority, tmp_path: Path) -> None:
    secret, trust = Secret(tmp_path / "secret"), trusting(authority.file)
    secret.put(*authority.pair(100))
    words = ("--tls-cert", str(secret.cert), "--tls-key", str(secret.key))
    with (
        serving(tmp_path, *words) as (port, log),
        httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trust, timeout=60, trust_env=False) as api,
    ):
        assert not ask(api, review(pod(*FULL)))["allowed"]
        assert serial(port, trust) == 100
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"https://127.0.0.1:{port}/livez", timeout=20, trust_env=False)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/livez", timeout=20, trust_env=False)

        old = trusting(authority.file)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        assert serial(port, old) == 100
        old.set_ciphers("AES128-SHA")
        with pytest.raises(ssl.SSLError):
            serial(port, old)

        secret.put(*authority.pair(200))
        until(log, "a renewed certificate is served")
        assert serial(port, trust) == 200

        certificate, _ = authority.pair(300)
        _, another = authority.pair(301)
        secret.put(certificate, another)
        until(log, "the key is not the certificate's")
        assert serial(port, trust) == 200, "the pair before it stays"
        assert not ask(api, review(pod(*FULL)))["allowed"], "the connection from the start is still good"

        secret.put(*authority.pair(400))
        end = time.monotonic() + 30
        while serial(port, trust) != 400:
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        assert ask(api, review(pod()))["allowed"]


@pytest.mark.parametrize(
    ("cert", "key", "said"),
    [
        ("cert", None, "belong together"),
        (None, "key", "belong together"),
        ("absent", "key", "cannot be read: No such file"),
        ("cert", "absent", "cannot be read: No such file"),
        ("key", "key", "no PEM files"),
        ("cert", "other", "the key is not the certificate's"),
        ("text", "key", "no PEM files"),
        ("cert", "locked", "is encrypted"),
    ],
)
def test_files_that_cannot_be_used_are_said(
    authority: Authority, tmp_path: Path, cert: str | None, key: str | None, said: str
) -> None:
    certificate, private = authority.pair(5)
    files = {"cert": certificate, "key": private, "other": authority.pair(6)[1], "text": b"text", "locked": LOCKED}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    named = {"tls_cert": cert and tmp_path / cert, "tls_key": key and tmp_path / key}
    with pytest.raises(TlsError, match=said):
        open_tls(TlsSettings().model_copy(update=named))


def test_a_start_with_files_that_cannot_be_used_ends_at_once(tmp_path: Path) -> None:
    done = graphgate("serve", "--port", "0", "--tls-cert", "absent.crt", "--tls-key", "absent.key", cwd=tmp_path)
    assert done.code == 2
    assert "absent.crt cannot be read: No such file" in done.err


def _locked() -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"a password"),
    )


LOCKED = _locked()
