"""Captures: proof of a launch on a device."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from service import jsontext
from service.capturing import accept
from service.conditional import unchanging
from service.problem_types import CAPTURE_FINISHED
from service.problems import Problem
from service.routes._common import Nothing, answer, before, known_id, missing, page, problems, visible
from service.schemas.answers import CaptureOut, CapturesPage
from service.schemas.queries import CapturesQuery, EventsQuery
from service.schemas.requests import CaptureRequest
from service.security.identity import Caller
from service.security.trail import Asking
from service.store.captures import ENDED
from service.wiring import Services, Wired

router = APIRouter(prefix="/v1/captures", tags=["captures"])


@router.post(
    "",
    status_code=202,
    summary="Capture the graphs of a launch",
    responses={202: {"model": CaptureOut}, **problems(400, 403, 404, 409, 413, 415, 422, 503)},
)
async def create(body: CaptureRequest, _: Nothing, by: Asking, wired: Wired) -> Response:
    """Accepted captures are run by a worker, in the order they came. A rejected launch answers 409 with the verdict,
    unless `on_rejected` is "prove"."""
    identity = await wired.examining.run(accept, wired, body.model_dump(exclude_unset=True), by)
    if wired.worker is not None:
        wired.worker.wake()
    capture = await _get(identity, wired)
    return answer(capture, status=202, headers={"Location": f"/v1/captures/{identity}"})


@router.get("", summary="Captures, newest first", responses={200: {"model": CapturesPage}, **problems(422, 503)})
async def recent(query: Annotated[CapturesQuery, Query()], by: Caller, wired: Wired) -> Response:
    """The caller's own (with the scope admin: all), in short, page by page."""
    items = await wired.asking.run(
        wired.captures.page, query.filter(by.only), limit=query.limit + 1, before=before(query.cursor, "cap")
    )
    return answer(page(items, query.limit))


@router.get("/{id}", summary="One capture", responses={200: {"model": CaptureOut}, **problems(404, 422, 503)})
async def one(id: str, _: Nothing, by: Caller, wired: Wired, request: Request) -> Response:  # noqa: A002 - the name in the address
    """With its validation and, once it has ended, its report."""
    capture = await _get(await visible(id, "cap", "capture", by, wired), wired)
    return unchanging(request, jsontext.dumps(capture)) if capture["state"] in ENDED else answer(capture)


@router.get(
    "/{id}/events",
    summary="What happens in a capture, as server-sent events",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "Events"},
        204: {"description": "It has ended, and Last-Event-ID is its last event: there is nothing to come back for"},
        **problems(404, 422, 503),
    },
)
async def events(
    id: str,  # noqa: A002 - the name in the address
    query: Annotated[EventsQuery, Query()],
    by: Caller,
    wired: Wired,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """From the first event, or after `after` or `Last-Event-ID`; ends with the capture's last event, `end`. A comment
    keeps a quiet stream alive; `retry` says when to come back after it broke."""
    identity = await visible(id, "cap", "capture", by, wired)
    seen = int(last_event_id) if last_event_id and last_event_id.isdecimal() and len(last_event_id) < 10 else 0
    after = query.after if query.after is not None else seen
    state, news = await wired.asking.run(wired.captures.news, identity, after=after, limit=1)
    if state is None:
        raise missing(id, "capture")
    if seen and state in ENDED and not news:
        return Response(status_code=204)
    wired.streams.check()
    stream = wired.streams.of(identity, after, wired)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.delete(
    "/{id}",
    summary="Cancel a capture",
    responses={200: {"model": CaptureOut}, 202: {"model": CaptureOut}, **problems(404, 409, 422, 503)},
)
async def cancel(id: str, _: Nothing, by: Asking, wired: Wired) -> Response:  # noqa: A002 - the name in the address
    """A waiting capture is cancelled at once (200), a running one when its worker has stopped it (202)."""
    identity = await visible(id, "cap", "capture", by.identity, wired)
    state = await wired.asking.run(wired.captures.cancel, identity)
    if state in ("succeeded", "failed", "dead"):
        raise Problem(CAPTURE_FINISHED, f"The capture has ended already ({state}).")
    if state in ("queued", "running"):
        await wired.asking.run(wired.guard.trail.record, by.did("capture.cancelled", identity))
    return answer(await _get(identity, wired), status=202 if state == "running" else 200)


async def _get(identity: str, wired: Services) -> dict[str, Any]:
    capture = await wired.asking.run(wired.captures.get, known_id(identity, "cap", "capture"))
    if capture is None:
        raise missing(identity, "capture")
    return capture
