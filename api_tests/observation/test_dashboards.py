"""The dashboard and the alerts speak of metrics that there are, and each alert has its chapter in the runbook."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from api_tests.material import ROOT
from service.observation.census import CENSUS
from service.observation.metrics import Metrics

ALERTS = ROOT / "deploy" / "observation" / "alerts.yaml"
DASHBOARD = ROOT / "deploy" / "observation" / "dashboard.json"
RULES_TEST = ROOT / "api_tests" / "observation" / "alerts.promtool.yaml"
_NAME = re.compile(r"\b((?:graphgate|process)_[a-z_]+)")


def alerts() -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    return rules


def known() -> set[str]:
    """Every series' name that a process can give."""
    text = Metrics().text().decode()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    names = set(types) | set(CENSUS)
    for name, kind in types.items():
        if kind == "histogram":
            names |= {f"{name}_bucket", f"{name}_count", f"{name}_sum"}
    return names


def used(expressions: list[str]) -> set[str]:
    return {name for expression in expressions for name in _NAME.findall(expression)}


def test_the_alerts_use_metrics_that_there_are() -> None:
    names = used([rule["expr"] for rule in alerts()])
    assert len(names) >= 8
    assert names <= known()


def test_the_dashboard_uses_metrics_that_there_are() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    names = used([target["expr"] for panel in panels for target in panel.get("targets", ())])
    assert len(names) >= 12
    assert names <= known()
    assert {panel["id"] for panel in panels} == set(range(1, len(panels) + 1))


def test_every_metric_of_ours_is_documented() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    ours = {
        name
        for name in known()
        if name.startswith("graphgate_") and not name.endswith(("_bucket", "_count", "_sum", "_created"))
    }
    assert ours
    assert {name for name in ours if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: str(rule["alert"]))
def test_every_alert_has_its_chapter(rule: dict[str, Any]) -> None:
    file, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in {heading.lower().replace(" ", "-") for heading in headings}
    assert anchor == rule["alert"].lower()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus (promtool)")
@pytest.mark.parametrize("command", [("check", "rules", ALERTS), ("test", "rules", RULES_TEST)], ids=["check", "test"])
def test_prometheus_takes_the_alerts(command: tuple[str, str, Path]) -> None:
    done = subprocess.run(["promtool", *map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus (promtool)")
def test_the_rules_test_fails_where_an_alert_is_lost(tmp_path: Path) -> None:
    weaker = ALERTS.read_text(encoding="utf-8").replace("graphgate_database_up == 0", "graphgate_database_up == 7")
    (tmp_path / "alerts.yaml").write_text(weaker, encoding="utf-8")
    test = RULES_TEST.read_text(encoding="utf-8").replace("../../deploy/observation/alerts.yaml", "alerts.yaml")
    (tmp_path / "test.yaml").write_text(test, encoding="utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "GraphgateDatabaseDown" in done.stdout + done.stderr
