"""Metrics of one process, in the form that Prometheus reads. Names and labels are a contract: docs/operations.md.

Each process (API, worker) has a registry of its own. What only the database knows, such as how many captures wait, is
read when somebody asks: :mod:`service.observation.census`.
"""

from __future__ import annotations

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from engine.capture.report import CaptureReport
from engine.modes import Gate
from engine.verdict import Verdict
from engine.version import VERSION

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"

_REQUEST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_CHECK_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1, 1.0, 10.0)
_CAPTURE_S = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


class Metrics:
    """What happened in this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        registry = self.registry
        self._verdicts = Counter(
            "graphgate_verdicts",
            "Verdicts given, by the point that asked (http, admission)",
            ("verdict", "release", "point"),
            registry=registry,
        )
        self._findings = Counter(
            "graphgate_findings",
            "Findings in verdicts, by rule, by the severity that the policy left, and by the rule's mode",
            ("rule", "severity", "mode"),
            registry=registry,
        )
        self._check_s = Histogram(
            "graphgate_check_seconds",
            "Seconds that examining one launch took, model look-up included",
            buckets=_CHECK_S,
            registry=registry,
        )
        self._request_s = Histogram(
            "graphgate_http_request_seconds",
            "Seconds from the request's first line to the answer's last byte",
            ("method", "route", "status"),
            buckets=_REQUEST_S,
            registry=registry,
        )
        self._outcomes = Counter(
            "graphgate_capture_outcomes",
            "Phases captured by this process, by outcome; claim tells emulated (CPU) from measured (GPU)",
            ("phase", "outcome", "claim"),
            registry=registry,
        )
        self._ended = Counter(
            "graphgate_captures_ended",
            "Captures that this process brought to an end, by their last state",
            ("state",),
            registry=registry,
        )
        self._capture_s = Histogram(
            "graphgate_capture_seconds",
            "Seconds that one attempt at a capture took in its child process",
            ("claim",),
            buckets=_CAPTURE_S,
            registry=registry,
        )
        self._hub = Counter(
            "graphgate_hub_calls",
            "Questions put to the model hub over the network, by how they ended",
            ("outcome",),
            registry=registry,
        )
        self._hub_s = Histogram(
            "graphgate_hub_seconds", "Seconds that one question to the model hub took", registry=registry
        )
        self._unknown = Counter(
            "graphgate_admission_unknown",
            "Objects and launches that admission could not examine, by what became of them (allow, deny)",
            ("answer",),
            registry=registry,
        )
        self._refused = Counter(
            "graphgate_requests_refused",
            "Requests that access control or a limit turned away",
            ("reason",),
            registry=registry,
        )
        Gauge(
            "graphgate_build_info", "1; the labels are the running versions", ("version", "python"), registry=registry
        ).labels(VERSION, platform.python_version()).set(1)

    def add(self, collector: Collector) -> None:
        """Ask this too, each time somebody reads the metrics."""
        self.registry.register(collector)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format. Asks the database: not for the event loop's own thread."""
        return generate_latest(self.registry)

    def verdict(self, verdict: Verdict, gate: Gate, seconds: float) -> None:
        """A launch was examined, at the point that ``gate`` stands for."""
        self._verdicts.labels(verdict.verdict, str(verdict.engine["version"]), gate.point).inc()
        self._check_s.observe(seconds)
        for finding in verdict.findings:
            self._findings.labels(finding.rule, finding.severity, gate.policy.mode(finding.rule, gate.point)).inc()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered. ``route`` is the template of its address, so that ids make no series of their own."""
        self._request_s.labels(method, route, str(status)).observe(seconds)

    def unknown(self, answer: str) -> None:
        """Admission could not examine something, and answered as it is set to: allow or deny."""
        self._unknown.labels(answer).inc()

    def refused(self, reason: str) -> None:
        """Access control or a limit turned a request away: unauthenticated, forbidden, rate, quota."""
        self._refused.labels(reason).inc()

    def capture(self, report: CaptureReport, state: str, seconds: float) -> None:
        """An attempt at a capture ended it, in this state and with this report."""
        claim = report.claim or "none"
        self._ended.labels(state).inc()
        self._capture_s.labels(claim).observe(seconds)
        for phase, result in report.phases.items():
            self._outcomes.labels(phase, result.outcome, claim).inc()

    def hub_call(self, outcome: str, seconds: float) -> None:
        """The hub was asked over the network: found, missing, denied, failed, timeout."""
        self._hub.labels(outcome).inc()
        self._hub_s.observe(seconds)
