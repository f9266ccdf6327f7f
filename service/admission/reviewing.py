"""From an AdmissionRequest to its answer, within a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from anyio import CapacityLimiter

from engine.errors import HubUnavailable, QuestionError
from engine.manifests import FoundLaunch, Silence, launch_of, launches_in_documents
from engine.models.resolver import ModelResolver
from engine.modes import Gate
from engine.preflight import check
from service.admission.hurry import Hurried, within
from service.admission.outcomes import Outcome, examined, message, together, unknown
from service.admission.settings import AdmissionSettings
from service.observation.metrics import Metrics
from service.schemas.admission import AdmissionRequest
from service.security.redaction import secrets_of, without

_THREADS = 16
_MOST_LAUNCHES = 64
_log = logging.getLogger("graphgate.admission")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Answers reviews. It has threads of its own, so that admission waits for nobody else's look-ups."""

    settings: AdmissionSettings
    resolver: ModelResolver
    gate: Gate
    metrics: Metrics
    room: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_THREADS))

    async def answer(self, request: AdmissionRequest, timeout: str | None = None) -> dict[str, Any]:
        """The AdmissionReview to send back, whatever happens. ``timeout`` is the API server's limit, as ``2s``."""
        wait_s = within(self.settings.admission_wait_s, timeout)
        outcomes: Sequence[Outcome]
        try:
            with anyio.fail_after(wait_s + 0.1):
                call = partial(self._outcomes, request, time.monotonic() + wait_s)
                outcomes = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self.room)
        except TimeoutError:
            outcomes = [self._unknown(None, f"no answer within {wait_s:g} s")]
        except Exception:
            _log.exception("a review failed", extra={"object": f"{request.namespace}/{request.name}"})
            outcomes = [self._unknown(None, "graphgate failed on it; its log says why")]
        return _review(request.uid, outcomes, self.gate)

    def _outcomes(self, request: AdmissionRequest, due: float) -> list[Outcome]:
        if request.operation in ("DELETE", "CONNECT") or request.subResource:
            return []
        if not isinstance(request.object, Mapping):
            return [self._unknown(None, "the request holds no object")]
        if _is_going(request.object):
            return []
        asked = list(_changed(request))
        if len(asked) > _MOST_LAUNCHES:
            return [self._unknown(None, f"it holds {len(asked)} launches; at most {_MOST_LAUNCHES} are examined")]
        return [self._outcome(found, due) for found in asked]

    def _outcome(self, found: FoundLaunch, due: float) -> Outcome:
        silence = Silence(gpu=self.settings.admission_gpu, gpu_count=self.settings.admission_gpu_count)
        begun = time.perf_counter()
        try:
            launch = launch_of(found, silence)
            checked = check(launch, Hurried(self.resolver, due), self.gate)
        except HubUnavailable as error:
            return self._unknown(found, f"the model hub cannot be asked ({found.model and found.model.label})", error)
        except QuestionError as error:
            return self._unknown(found, error.detail, error)
        self.metrics.verdict(checked.verdict, self.gate, time.perf_counter() - begun)
        secrets = secrets_of(launch).difference(found.unknown)
        outcome = examined(found, checked.verdict, checked.facts, silence)
        return outcome if not secrets else _hidden(outcome, secrets)

    def _unknown(self, found: FoundLaunch | None, why: str, error: QuestionError | None = None) -> Outcome:
        if error is not None:
            _log.warning("a launch was not examined: %s", error, extra={"launch": found and found.owner})
        self.metrics.unknown(self.settings.admission_on_unknown)
        return unknown(found, why, deny=self.settings.admission_on_unknown == "deny")


def _is_going(document: Mapping[str, Any]) -> bool:
    """Whether it is being deleted: its finalizers must get through."""
    metadata = document.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("deletionTimestamp"))


def _changed(request: AdmissionRequest) -> Iterator[FoundLaunch]:
    """The launches that the object has and its old self has not: scaling and labelling deny nobody."""
    before = {_identity(found) for found in launches_in_documents([request.oldObject])}
    for found in launches_in_documents([request.object]):
        if _identity(found) not in before:
            yield found


def _identity(found: FoundLaunch) -> str:
    return repr(replace(found, owner="", path="", environment=dict(sorted(found.environment.items()))))


def _hidden(outcome: Outcome, secrets: frozenset[str]) -> Outcome:
    reasons = tuple(replace(reason, text=without(reason.text, secrets)) for reason in outcome.reasons)
    return replace(outcome, reasons=reasons, warnings=tuple(without(outcome.warnings, secrets)))


def _review(uid: str, outcomes: Sequence[Outcome], gate: Gate) -> dict[str, Any]:
    reasons = [reason for outcome in outcomes for reason in outcome.reasons]
    warnings = together([warning for outcome in outcomes for warning in outcome.warnings])
    response: dict[str, Any] = {"uid": uid, "allowed": not reasons}
    if reasons:
        response["status"] = {
            "status": "Failure",
            "code": 403,
            "reason": "Forbidden",
            "message": message(reasons),
            "details": {
                "causes": [{"reason": r.rule, "message": r.text, "field": r.place} for r in dict.fromkeys(reasons)]
            },
        }
    if warnings:
        response["warnings"] = warnings
    if outcomes:
        rules = dict.fromkeys(rule for outcome in outcomes for rule in outcome.rules)
        response["auditAnnotations"] = {
            "verdict": ",".join(outcome.verdict for outcome in outcomes),
            "rules": ",".join(rules),
            "policy": gate.policy.digest,
        }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
