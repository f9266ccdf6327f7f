"""The compose file keeps its promises: confined containers, one shared volume, torch in the worker's image only."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from api_tests.material import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def stages() -> dict[str, str]:
    """Each stage of the Dockerfile by name, with its text."""
    parts = re.split(r"^FROM \S+ AS (\S+)\n", DOCKERFILE, flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert any(mount.startswith("/tmp:") for mount in service["tmpfs"])  # noqa: S108 - a mount inside the container
    assert "mem_limit" in service
    assert "pids_limit" in service


def test_api_and_workers_share_the_data_and_only_the_api_is_reachable() -> None:
    assert {tuple(service["volumes"]) for service in SERVICES.values()} == {("data:/var/lib/graphgate",)}
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["api"]
    assert SERVICES["api"]["ports"] == ["127.0.0.1:8000:8000"], "there is no authentication: loopback only"


def test_the_api_leaves_captures_to_the_worker() -> None:
    assert SERVICES["api"]["environment"]["GRAPHGATE_EMBEDDED_WORKER"] == "off"
    assert SERVICES["api"]["build"]["target"] == "service"
    assert SERVICES["worker"]["build"]["target"] == "worker"
    assert SERVICES["worker"]["command"] == ["graphgate", "worker"]


def test_the_gpu_is_reserved_in_its_profile_alone() -> None:
    assert [name for name, service in SERVICES.items() if "gpu" in service.get("profiles", [])] == ["worker-gpu"]
    (device,) = SERVICES["worker-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}


@pytest.mark.parametrize("image", ["service", "worker"])
def test_an_image_runs_as_a_numbered_user_that_is_not_root(image: str) -> None:
    assert re.findall(r"^USER (\S+)$", stages()[image], re.M) == ["10001:10001"]


def test_only_the_workers_image_has_torch() -> None:
    assert [name for name, text in stages().items() if "[worker]" in text] == ["build-worker"]
    assert "COPY --from=build-service" in stages()["service"]
    assert "COPY --from=build-worker" in stages()["worker"]


def test_every_stage_starts_from_a_pinned_python() -> None:
    bases = set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)) - set(stages())
    assert bases == {"python:3.11-slim-bookworm"}
