"""What Prometheus reads."""

from __future__ import annotations

from fastapi import APIRouter, Response

from service.observation.metrics import CONTENT_TYPE
from service.routes._common import problems
from service.wiring import Wired

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    summary="Metrics, for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Prometheus' text format"}, **problems(503)},
)
async def metrics(wired: Wired) -> Response:
    """Of this process; queue depth and age, which the database knows, are the same from every process."""
    return Response(await wired.asking.run(wired.metrics.text), media_type=CONTENT_TYPE)
