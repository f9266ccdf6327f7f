"""Kubernetes admission: AdmissionReview in, AdmissionReview out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from service.routes._common import answer, problems
from service.schemas.admission import AdmissionQuery, AdmissionReview, AdmissionReviewOut
from service.wiring import Wired

router = APIRouter(prefix="/v1/admission", tags=["admission"])


@router.post(
    "",
    summary="The verdict on an object that a cluster is asked to take",
    responses={200: {"model": AdmissionReviewOut}, **problems(400, 408, 413, 415, 422)},
)
async def review(body: AdmissionReview, query: Annotated[AdmissionQuery, Query()], wired: Wired) -> Response:
    """For a ValidatingWebhookConfiguration. Denies what is rejected, warns of what is adjusted, changes and keeps
    nothing, and answers within a second whatever the model hub does."""
    return answer(await wired.admission.answer(body.request, query.timeout))
