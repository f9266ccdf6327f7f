"""AdmissionReview, admission.k8s.io/v1, as far as it is read and written here.

What the API server sends beside that is passed over: newer servers send more.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.schemas.queries import Query


class _Sent(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class AdmissionRequest(_Sent):
    """``object`` and ``oldObject`` are read by the finder of launches; what is no object cannot be read."""

    uid: str = Field(min_length=1, max_length=256, examples=["705ab4f5-6393-11e8-b7cc-42010a800002"])
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"] = Field(examples=["CREATE"])
    subResource: str | None = None  # noqa: N815 - the API's own name
    namespace: str | None = None
    name: str | None = None
    object: Any = None
    oldObject: Any = None  # noqa: N815 - the API's own name


class AdmissionReview(_Sent):
    """What the API server sends."""

    apiVersion: Literal["admission.k8s.io/v1"] = Field(examples=["admission.k8s.io/v1"])  # noqa: N815 - the API's own
    kind: Literal["AdmissionReview"] = Field(examples=["AdmissionReview"])
    request: AdmissionRequest


class Cause(BaseModel):
    """One reason: the rule or the engine's error, and the place in the object."""

    reason: str
    message: str
    field: str


class Details(BaseModel):
    """The reasons, one by one."""

    causes: list[Cause]


class Status(BaseModel):
    """Why the object is denied, in the form of the API's own errors."""

    status: Literal["Failure"]
    code: Literal[403]
    reason: Literal["Forbidden"]
    message: str
    details: Details


class AdmissionResponse(BaseModel):
    """The answer; ``warnings`` are shown to whoever sent the object."""

    uid: str
    allowed: bool
    status: Status | None = None
    warnings: list[Annotated[str, Field(max_length=120)]] | None = None
    auditAnnotations: dict[str, str] | None = None  # noqa: N815 - the API's own name


class AdmissionReviewOut(BaseModel):
    """What is answered."""

    apiVersion: Literal["admission.k8s.io/v1"]  # noqa: N815 - the API's own name
    kind: Literal["AdmissionReview"]
    response: AdmissionResponse


class AdmissionQuery(Query):
    """The API server puts its own time limit behind the address."""

    timeout: str | None = Field(None, description="The API server's time limit, such as `2s`.", examples=["2s"])
