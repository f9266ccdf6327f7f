"""Where others reach the service it does not start open, unless somebody says so."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from api_tests.cli.command import environment, graphgate
from api_tests.material import ROOT
from api_tests.security.guarded import make_key
from api_tests.server import free_port
from service.app import create_app
from service.security.mode import AccessError, is_loopback, must_identify
from service.security.opening import table_of
from service.security.scopes import OPEN
from service.settings import Settings, SettingsError, load_settings


def settings_for(data: Path, **more: str) -> dict[str, str]:
    return {"GRAPHGATE_DATA": str(data), "GRAPHGATE_EMBEDDED_WORKER": "off", **more}


@contextlib.contextmanager
def serving(data: Path, host: str, **more: str) -> Iterator[str]:
    port = free_port()
    words = [sys.executable, "-m", "service", "serve", "--host", host, "--port", str(port)]
    with (data / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            words, cwd=ROOT, env=environment(**settings_for(data, **more)), stdout=log, stderr=log
        )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/livez", trust_env=False)
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def test_it_refuses_to_start_open_where_others_reach_it(tmp_path: Path) -> None:
    done = graphgate("serve", "--host", "0.0.0.0", "--port", "0", settings=settings_for(tmp_path))  # noqa: S104 - refused
    words = " ".join(done.err.split())
    assert done.code == 2
    assert "reachable from other machines" in words
    assert "graphgate keys create" in words
    assert "GRAPHGATE_ACCESS=off" in words


def test_it_starts_open_there_where_the_settings_say_so(tmp_path: Path) -> None:
    with serving(tmp_path, "0.0.0.0", GRAPHGATE_ACCESS="off") as url:  # noqa: S104 - that address is the test
        assert httpx.get(f"{url}/v1/rules", trust_env=False).status_code == 200


def test_with_a_key_it_starts_there_and_asks_for_it(tmp_path: Path) -> None:
    key = make_key(tmp_path, "one", "--scope", "validate")
    with serving(tmp_path, "0.0.0.0") as url:  # noqa: S104 - that address is the test
        assert httpx.get(f"{url}/v1/rules", trust_env=False).status_code == 401
        assert httpx.get(f"{url}/v1/rules", headers={"X-API-Key": key}, trust_env=False).status_code == 200
        assert httpx.get(f"{url}/metrics", headers={"X-API-Key": key}, trust_env=False).status_code == 403


def test_on_the_loopback_interface_nobody_is_asked(local: str) -> None:
    assert httpx.get(f"{local}/v1/rules", trust_env=False).status_code == 200
    assert httpx.get(f"{local}/metrics", trust_env=False).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost", 200),
        ("[::1]:80", 200),
        ("graphgate.localhost", 200),
        ("attacker.example", 421),
        ("127.0.0.1.attacker.example", 421),
        ("localhost.attacker.example:8000", 421),
        ("10.0.0.1", 421),
        ("[bad", 421),
        ("", 421),
    ],
)
def test_the_open_service_answers_under_loopback_names_alone(local: str, host: str, status: int) -> None:
    answer = httpx.get(f"{local}/v1/rules", headers={"Host": host}, trust_env=False)
    assert answer.status_code == status
    if status == 421:
        assert answer.json()["type"] == "/problems/not-local"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("local"), "127.0.0.1") as url:
        yield url


def test_metrics_and_admission_are_opened_by_a_setting() -> None:
    asked = {"type": "http", "headers": [], "root_path": ""}
    for given, needed in (
        (None, ["admin", "validate"]),
        ("metrics", [OPEN, "validate"]),
        ("admission, metrics", [OPEN] * 2),
    ):
        settings = Settings(access="required", open=given)
        table = table_of(create_app(settings), settings)
        rows = (("GET", "/metrics"), ("POST", "/v1/admission"))
        assert [table.needed({**asked, "method": method, "path": path}) for method, path in rows] == needed


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - asked about, not listened on
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("192.168.1.7", False),
        ("no-such-host.invalid", False),
    ],
)
def test_what_counts_as_the_loopback_interface(host: str, local: bool) -> None:
    assert is_loopback(host) is local


def test_a_key_or_an_identity_provider_is_enough_elsewhere() -> None:
    settings = Settings(access="auto")
    assert must_identify(settings, "10.0.0.1", has_keys=True)
    provider = Settings(access="auto", oidc_issuer="https://issuer.example", oidc_audience="a")
    assert must_identify(provider, "10.0.0.1", has_keys=False)
    assert not must_identify(settings, "127.0.0.1", has_keys=True)
    assert must_identify(Settings(access="required"), "127.0.0.1", has_keys=False)
    for host in ("10.0.0.1", "::", "0.0.0.0"):  # noqa: S104 - asked about, not listened on
        with pytest.raises(AccessError, match="GRAPHGATE_ACCESS=required"):
            must_identify(settings, host, has_keys=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GRAPHGATE_ACCESS", "maybe"),
        ("GRAPHGATE_OPEN", "everything"),
        ("GRAPHGATE_RATE", "often"),
        ("GRAPHGATE_FAILURES", "0/second"),
        ("GRAPHGATE_LIMITS_URL", "https://example.org"),
        ("GRAPHGATE_GPU_SECONDS", "-1"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name):
        load_settings()
