"""A capture request becomes a queued job, or the reason why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.capture.job import CaptureOptions, job_for
from service.examining import examine
from service.fleet.needs import Need
from service.problem_types import QUEUE_FULL
from service.problems import Problem
from service.security.quota import reserving
from service.security.trail import SERVICE, Asker
from service.store.captures import QueueFull
from service.wiring import Services

PROVE = 'Send it with "on_rejected": "prove" to have it captured all the same.'


def accept(wired: Services, request: Mapping[str, Any], by: Asker = SERVICE) -> str:
    """Examine the launch and put its capture into the queue; the capture's id.

    Raises:
        Problem: the launch is rejected, the queue is full, or the caller has not as many GPU seconds.
        QuestionError: the request cannot be understood.
    """
    identity = by.new_id("cap")
    if by.reserved and by.reserved.again and wired.captures.state(identity) is not None:
        return identity
    options = CaptureOptions.from_dict(request.get("capture") or {})
    launch = {key: value for key, value in request.items() if key not in ("capture", "on_rejected")}
    answered = examine(wired, launch, by)
    verdict = answered.checked.verdict
    proving = request.get("on_rejected") == "prove"
    if answered.rejected and not proving:
        raise answered.problem(409, PROVE if verdict.prediction.graph else "")
    graph = verdict.effective.graph if verdict.effective is not None else verdict.prediction.graph
    if graph is None:
        raise answered.problem(409, "The engine refuses it before any capture, so there is nothing to prove.")
    need = Need.of(request, options)
    with reserving(wired.quotas, by.identity, identity, options, wired.metrics):
        job = job_for(
            id=identity,
            facts=answered.checked.facts,
            graph=graph,
            options=options,
            chunked_prefill_size=verdict.prediction.args.get("chunked_prefill_size"),
        )
        try:
            wired.captures.add(
                identity=identity,
                validation_id=answered.id,
                options=options.to_dict(),
                job=job.to_json(),
                queue=wired.settings.capture_queue,
                need=need,
                waiting_for=wired.fleet.missing(need),
                created_by=by.identity.owner,
            )
        except QueueFull:
            raise Problem(
                QUEUE_FULL,
                f"{wired.settings.capture_queue} captures are waiting already; repeat it when some have ended.",
                headers={"Retry-After": "30"},
            ) from None
    wired.guard.trail.record(by.did("capture.accepted", identity))
    wired.fleet.accepted(identity)
    return identity
