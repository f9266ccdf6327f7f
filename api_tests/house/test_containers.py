"""The compose file keeps its promises: confined containers, stores that nobody else reaches, torch in one image."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from api_tests.material import ROOT
from engine.version import VERSION
from service.settings import Settings

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


def test_only_the_api_is_reachable_and_the_stores_are_reached_by_graphgate_alone() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["api"]
    assert SERVICES["api"]["ports"] == ["127.0.0.1:8000:8000"]
    assert SERVICES["api"]["environment"]["GRAPHGATE_ACCESS"] == "required"
    assert COMPOSE["networks"]["stores"] == {"internal": True}
    networks = {name: service["networks"] for name, service in SERVICES.items()}
    assert networks.pop("api") == ["default", "stores"]
    assert set(map(tuple, networks.values())) == {("stores",)}
    volumes = {name: service["volumes"] for name, service in SERVICES.items()}
    assert volumes["worker"] == volumes["worker-gpu"] == ["worker:/var/lib/graphgate"]
    assert len({mount for mounts in volumes.values() for mount in mounts}) == 4, "what they share is the database"


def test_api_and_workers_meet_over_redis_and_postgresql() -> None:
    places = []
    for name in ("api", "worker", "worker-gpu"):
        environment = SERVICES[name]["environment"]
        places.append((environment["GRAPHGATE_DATABASE_URL"], environment["GRAPHGATE_BROKER_URL"]))
        assert SERVICES[name]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    ((database, broker),) = set(places)
    assert database.startswith("postgresql+psycopg://graphgate:${POSTGRES_PASSWORD:?")
    assert database.endswith("@postgres:5432/graphgate")
    assert broker == "redis://redis:6379/0"
    assert SERVICES["postgres"]["environment"]["POSTGRES_DB"] == "graphgate"
    assert "[fleet,tracing]" in stages()["build"], "drivers of both are in the images"


def test_the_api_leaves_captures_to_the_worker() -> None:
    assert not Settings(broker_url=SecretStr("redis://redis:6379/0")).runs_worker
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
    assert [name for name, text in stages().items() if ",worker]" in text] == ["build-worker"]
    assert "COPY --from=build-service" in stages()["service"]
    assert "COPY --from=build-worker" in stages()["worker"]


def test_every_stage_starts_from_a_pinned_python() -> None:
    bases = set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)) - set(stages())
    assert bases == {"python:3.11-slim-bookworm"}


def pod() -> dict[str, Any]:
    documents = yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / "graphgate.yaml").read_text(encoding="utf-8"))
    (deployment,) = [document for document in documents if document["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 1, "SQLite is one machine's"
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return found


def test_the_pod_runs_the_same_two_containers_as_compose() -> None:
    commands = {container["name"]: container["args"] for container in pod()["containers"]}
    assert commands == {name: SERVICES[name]["command"] for name in ("api", "worker")}
    images = {container["name"]: container["image"] for container in pod()["containers"]}
    assert images == {name: f"{SERVICES[name]['image']}:{VERSION}" for name in ("api", "worker")}


def test_the_pods_containers_are_confined_and_share_the_data() -> None:
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["automountServiceAccountToken"] is False
    for container in pod()["containers"]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert {"name": "data", "mountPath": "/var/lib/graphgate"} in container["volumeMounts"]


def test_every_place_stops_later_than_a_running_capture_is_given() -> None:
    grace: float = Settings.model_fields["capture_grace_s"].default
    unit = (ROOT / "deploy" / "systemd" / "graphgate.service").read_text(encoding="utf-8")
    stops = [float(service["stop_grace_period"].removesuffix("s")) for service in SERVICES.values()]
    stops += [float(pod()["terminationGracePeriodSeconds"])]
    stops += [float(seconds) for seconds in re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.M)]
    assert len(stops) == len(SERVICES) + 2
    assert min(stops) > grace
