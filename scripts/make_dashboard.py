"""Writes the Grafana dashboard from a short table of panels: deploy/observation/dashboard.json.

Run it after changing a metric's name; the checks compare the file with what this makes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "deploy" / "observation" / "dashboard.json"
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_CHOSEN = 'job=~"$job"'


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph: what it shows, its unit in Grafana's words, and its lines as (legend, expression)."""

    title: str
    unit: str
    lines: Sequence[tuple[str, str]]
    why: str = ""


def _rate(metric: str, by: str, where: str = "") -> str:
    inside = ", ".join(filter(None, (_CHOSEN, where)))
    return f"sum by ({by}) (rate({metric}{{{inside}}}[$__rate_interval]))"


def _quantile(q: float, metric: str, where: str = "") -> str:
    return f"histogram_quantile({q}, {_rate(metric + '_bucket', 'le', where)})"


def _now(metric: str, by: str) -> str:
    return f"max by ({by}) ({metric}{{{_CHOSEN}}})" if by else f"max({metric}{{{_CHOSEN}}})"


_VALIDATE = 'route="/v1/validations", method="POST"'
ROWS: Sequence[tuple[str, Sequence[Panel]]] = (
    (
        "Verdicts",
        (
            Panel("Verdicts", "ops", [("{{verdict}} {{point}}", _rate("graphgate_verdicts_total", "verdict, point"))]),
            Panel(
                "Findings by rule",
                "ops",
                [("{{rule}} {{severity}} ({{mode}})", _rate("graphgate_findings_total", "rule, severity, mode"))],
                "A rule in mode warn that would have rejected counts as a warning.",
            ),
            Panel(
                "One check",
                "s",
                [(f"p{q * 100:g}", _quantile(q, "graphgate_check_seconds")) for q in (0.5, 0.99)],
                "Model look-up included: the tail is the hub.",
            ),
        ),
    ),
    (
        "HTTP",
        (
            Panel(
                "Requests",
                "reqps",
                [("{{route}} {{status}}", _rate("graphgate_http_request_seconds_count", "route, status"))],
            ),
            Panel(
                "POST /v1/validations",
                "s",
                [(f"p{q * 100:g}", _quantile(q, "graphgate_http_request_seconds", _VALIDATE)) for q in (0.5, 0.99)],
            ),
            Panel("Turned away", "reqps", [("{{reason}}", _rate("graphgate_requests_refused_total", "reason"))]),
        ),
    ),
    (
        "Captures",
        (
            Panel("Waiting and running", "short", [("{{state}}", _now("graphgate_captures", "state"))]),
            Panel("Age of the queue", "s", [("oldest", _now("graphgate_queue_age_seconds", ""))]),
            Panel("Workers alive", "short", [("{{kind}}", _now("graphgate_workers", "kind"))]),
            Panel(
                "Outcomes",
                "ops",
                [
                    (
                        "{{phase}} {{outcome}} ({{claim}})",
                        _rate("graphgate_capture_outcomes_total", "phase, outcome, claim"),
                    )
                ],
                "mismatch: a replay differed from eager. emulated ran on a CPU, measured on a GPU.",
            ),
            Panel("Ended", "ops", [("{{state}}", _rate("graphgate_captures_ended_total", "state"))]),
            Panel(
                "One attempt", "s", [(f"p{q * 100:g}", _quantile(q, "graphgate_capture_seconds")) for q in (0.5, 0.95)]
            ),
        ),
    ),
    (
        "What it depends on",
        (
            Panel("Hub", "reqps", [("{{outcome}}", _rate("graphgate_hub_calls_total", "outcome"))]),
            Panel(
                "Hub, one call", "s", [(f"p{q * 100:g}", _quantile(q, "graphgate_hub_seconds")) for q in (0.5, 0.99)]
            ),
            Panel("Database answers", "short", [("{{instance}}", _now("graphgate_database_up", "instance"))]),
            Panel("Memory", "bytes", [("{{instance}}", _now("process_resident_memory_bytes", "instance"))]),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The whole, three panels in a row."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        panels.append(
            {"type": "row", "title": title, "id": len(panels) + 1, "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}}
        )
        y += 1
        for i, panel in enumerate(row):
            if i and i % 3 == 0:
                y += 8
            panels.append(_panel(panel, len(panels) + 1, x=8 * (i % 3), y=y))
        y += 8
    return {
        "uid": "graphgate",
        "title": "graphgate",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus"},
                {
                    "name": "job",
                    "type": "query",
                    "datasource": _SOURCE,
                    "query": "label_values(graphgate_build_info, job)",
                    "includeAll": True,
                    "multi": True,
                },
            ]
        },
        "panels": panels,
    }


def _panel(panel: Panel, identity: int, *, x: int, y: int) -> dict[str, Any]:
    return {
        "id": identity,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.why,
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": 8, "h": 8},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + i), "expr": expression, "legendFormat": legend, "datasource": _SOURCE}
            for i, (legend, expression) in enumerate(panel.lines)
        ],
    }


def main() -> int:
    """Write the file, or with ``--check`` compare it."""
    wanted = json.dumps(dashboard(), indent=1) + "\n"
    if sys.argv[1:] == ["--check"]:
        return int(not TARGET.exists() or TARGET.read_text(encoding="utf-8") != wanted)
    TARGET.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
