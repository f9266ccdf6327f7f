"""What can be wrong with a question. Every error says what to change.

The tree::

    GraphgateError
    └── QuestionError              the question cannot be answered as it was put (exit 2, HTTP 4xx)
        ├── InvalidLaunch          a field of the launch has the wrong form
        ├── UnknownEngine          no such engine here
        ├── UnknownRelease         not a release number
        ├── UnknownGpu             no such GPU in the table
        └── ModelError             the model cannot be resolved
            ├── InvalidModelId     not an "org/name" of the hub
            ├── ModelNotFound      neither the hub nor the catalogue has it
            ├── ModelAccessDenied  the hub asks for a token, or refuses the one it was given
            ├── HubUnavailable     the hub is down, slow, or answers nonsense
            ├── HubRateLimited     the hub asks to wait
            ├── PathNotAllowed     a local path outside the allowed roots
            ├── ConfigTooLarge     a config.json over the limit
            └── ConfigUnreadable   a config.json that is not JSON, or whose fields contradict each other

``slug`` is the stable name of the problem: the last part of the problem type's URI over HTTP, and the ``code`` of the
command line's error output.
"""

from __future__ import annotations

from typing import ClassVar


class GraphgateError(Exception):
    """Root of everything that graphgate raises on purpose."""


class QuestionError(GraphgateError):
    """The question cannot be answered as it was put.

    ``detail`` is one sentence about what is wrong; ``remedy`` one sentence about what to change; ``field`` the place
    in the request, as a dotted path, where there is one.
    """

    slug: ClassVar[str] = "unusable-question"
    status: ClassVar[int] = 422
    title: ClassVar[str] = "The question cannot be answered as it was put"

    def __init__(self, detail: str, *, remedy: str = "", field: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.remedy = remedy
        self.field = field

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        return f"{where}{self.detail}" + (f" {self.remedy}" if self.remedy else "")


class InvalidLaunch(QuestionError):
    slug = "invalid-launch"
    title = "The launch has a field of the wrong form"


class UnknownEngine(QuestionError):
    slug = "unknown-engine"
    title = "No such engine"


class UnknownRelease(QuestionError):
    slug = "unknown-release"
    title = "No such engine release"


class UnknownGpu(QuestionError):
    slug = "unknown-gpu"
    title = "No such GPU"


class ModelError(QuestionError):
    slug = "model-error"
    title = "The model cannot be resolved"


class InvalidModelId(ModelError):
    slug = "invalid-model-id"
    title = "Not a model id"


class ModelNotFound(ModelError):
    slug = "model-not-found"
    status = 404
    title = "Model not found"


class ModelAccessDenied(ModelError):
    slug = "model-access-denied"
    status = 403
    title = "The hub does not give access to the model"


class HubUnavailable(ModelError):
    slug = "hub-unavailable"
    status = 503
    title = "The model hub cannot be reached"


class HubRateLimited(ModelError):
    """``retry_after`` is the number of seconds that the hub asked to wait, where it said so."""

    slug = "hub-rate-limited"
    status = 503
    title = "The model hub asks to wait"

    def __init__(
        self, detail: str, *, remedy: str = "", field: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(detail, remedy=remedy, field=field)
        self.retry_after = retry_after


class PathNotAllowed(ModelError):
    slug = "path-not-allowed"
    status = 403
    title = "The path is outside the allowed folders"


class ConfigTooLarge(ModelError):
    slug = "config-too-large"
    title = "The model's config.json is too large"


class ConfigUnreadable(ModelError):
    slug = "config-unreadable"
    title = "The model's config.json cannot be understood"
