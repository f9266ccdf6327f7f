"""Every kind of problem that the service answers with: one row a kind, its page served at ``/problems/SLUG``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass

from engine.errors import QuestionError


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One kind: the stable last part of its URI, its status, a title, and what to do about it."""

    slug: str
    status: int
    title: str
    about: str

    @property
    def uri(self) -> str:
        """The problem type's URI, relative to the service."""
        return f"/problems/{self.slug}"


BAD_JSON = ProblemType(
    "bad-json",
    400,
    "The body is not JSON",
    "The body must be one JSON document (RFC 8259), in UTF-8, with each name at most once in an object. NaN and "
    "Infinity are taken inside model.config alone, where real config.json files hold them.",
)
INVALID_REQUEST = ProblemType(
    "invalid-request",
    422,
    "The request has fields of the wrong form",
    "The body is JSON, but not the form that this address takes: `errors` names each field, as a JSON pointer, with "
    "what is wrong and what to write instead. The forms are in /v1/openapi.json.",
)
TOO_LARGE = ProblemType(
    "body-too-large",
    413,
    "The body is too large",
    "A launch is a few kilobytes, a model's config.json rarely above 100. The limit is GRAPHGATE_MAX_BODY_BYTES.",
)
TOO_SLOW = ProblemType(
    "body-too-slow",
    408,
    "The body did not arrive in time",
    "Nothing was done. The limit is GRAPHGATE_BODY_WAIT_S seconds from the header to the last byte.",
)
TOO_COMPLEX = ProblemType(
    "body-too-complex",
    400,
    "The JSON is nested too deep or has too many items",
    "The limits are GRAPHGATE_MAX_JSON_DEPTH levels and GRAPHGATE_MAX_JSON_ITEMS items in one body.",
)
UNSUPPORTED_MEDIA_TYPE = ProblemType(
    "unsupported-media-type",
    415,
    "The body is not declared as JSON",
    "Send `Content-Type: application/json`, in UTF-8, without a Content-Encoding.",
)
NOT_FOUND = ProblemType("not-found", 404, "Nothing is here", "The address, or the id in it, is not known here.")
METHOD_NOT_ALLOWED = ProblemType(
    "method-not-allowed", 405, "The address does not take this method", "The header `Allow` lists the methods it takes."
)
LAUNCH_REJECTED = ProblemType(
    "launch-rejected",
    422,
    "The launch is rejected",
    "The launch was understood and examined; its verdict is `rejected`. The member `validation` holds the whole "
    "answer, with every reason and what to change. With ?strict=true a validation answers so (422), and a capture of a "
    'rejected launch does (409) unless it was sent with `"on_rejected": "prove"`.',
)
CAPTURE_FINISHED = ProblemType(
    "capture-finished", 409, "The capture is over", "A capture that has ended cannot be cancelled; its report stays."
)
OVERLOADED = ProblemType(
    "overloaded",
    503,
    "Too many requests are waiting",
    "Nothing was done. Repeat the request after the seconds in `Retry-After`.",
)
QUEUE_FULL = ProblemType(
    "capture-queue-full",
    503,
    "Too many captures are waiting",
    "Nothing was accepted. Repeat the request when captures have ended; the limit is GRAPHGATE_CAPTURE_QUEUE.",
)
STORE_UNAVAILABLE = ProblemType(
    "store-unavailable",
    503,
    "The database cannot be used",
    "Nothing was kept. /readyz says what the database answered; the log of the service has the whole error.",
)
UNAUTHENTICATED = ProblemType(
    "unauthenticated",
    401,
    "The request does not say who asks",
    "Send an API key, as `Authorization: Bearer gg_...` or `X-API-Key: gg_...`, or a bearer token of the identity "
    "provider where one is configured. `graphgate keys create` makes keys; `detail` says what was wrong with this one.",
)
NOT_LOCAL = ProblemType(
    "not-local",
    421,
    "The request is for another host name",
    "Without access control this service answers under loopback names alone, so that neither a web page nor a proxy "
    "opens it to others. Set GRAPHGATE_ACCESS=required and make keys, or GRAPHGATE_ACCESS=off to let everybody in.",
)
INSUFFICIENT_SCOPE = ProblemType(
    "insufficient-scope",
    403,
    "The key may not do this",
    "`needed_scope` names the scope that the address needs. A key's scopes are fixed when it is created.",
)
RATE_LIMITED = ProblemType(
    "rate-limited",
    429,
    "Too many requests",
    "Nothing was done. Repeat the request after the seconds in `Retry-After`; `RateLimit-Policy` says what is allowed.",
)
TOO_MANY_FAILURES = ProblemType(
    "too-many-failures",
    429,
    "Too many requests without a credential that is taken",
    "Counted by client address. Those that were good before are still taken; others are not looked at for a while.",
)
GPU_QUOTA = ProblemType(
    "gpu-quota",
    429,
    "The GPU seconds of today are used up",
    "A capture reserves its `timeout_s` from the day's GPU seconds (UTC) and gives back what it did not use. `quota` "
    "says how many there are, how many are taken and when the day ends. 403 where the capture asks for more than a "
    'whole day has. A capture on `"device": "cpu"` takes none.',
)
IDENTITY_PROVIDER = ProblemType(
    "identity-provider-unavailable",
    503,
    "The identity provider does not answer",
    "The token cannot be checked, because the provider's keys cannot be fetched. API keys work all the same.",
)
IDEMPOTENCY_KEY = ProblemType(
    "idempotency-key-invalid",
    400,
    "The Idempotency-Key cannot be used",
    "Send the header once, with 1 to 255 visible ASCII characters that no other request of yours has: a UUID will do.",
)
IDEMPOTENCY_REUSED = ProblemType(
    "idempotency-key-reused",
    422,
    "The Idempotency-Key belongs to another request",
    "A key is bound to the method, address, query and body that it was first sent with, byte for byte, as long as it "
    "is remembered (GRAPHGATE_IDEMPOTENCY_HOURS). A request that differs needs a key of its own.",
)
IDEMPOTENCY_IN_FLIGHT = ProblemType(
    "idempotency-key-in-flight",
    409,
    "A request with this Idempotency-Key is at work",
    "Repeat the same request after the seconds in `Retry-After`: it will have the first one's answer. Where the "
    "process that had it was killed, the key is free again after GRAPHGATE_IDEMPOTENCY_LEASE_S.",
)
NOT_ACCEPTABLE = ProblemType(
    "not-acceptable",
    406,
    "No version that the request accepts is there",
    "Ask for `application/vnd.graphgate.v1+json`, or for `application/json`, which means the same.",
)
INTERNAL = ProblemType(
    "internal-error",
    500,
    "A fault of the service",
    "This is a defect of graphgate, not of the request. Report it with `request_id`: the log has the details under it.",
)
OTHER = ProblemType("http-error", 400, "The request cannot be served", "`status` and `detail` say why.")

_OWN = (
    BAD_JSON,
    INVALID_REQUEST,
    TOO_LARGE,
    TOO_SLOW,
    TOO_COMPLEX,
    UNSUPPORTED_MEDIA_TYPE,
    NOT_FOUND,
    METHOD_NOT_ALLOWED,
    LAUNCH_REJECTED,
    CAPTURE_FINISHED,
    OVERLOADED,
    QUEUE_FULL,
    STORE_UNAVAILABLE,
    UNAUTHENTICATED,
    NOT_LOCAL,
    INSUFFICIENT_SCOPE,
    RATE_LIMITED,
    TOO_MANY_FAILURES,
    GPU_QUOTA,
    IDENTITY_PROVIDER,
    IDEMPOTENCY_KEY,
    IDEMPOTENCY_REUSED,
    IDEMPOTENCY_IN_FLIGHT,
    NOT_ACCEPTABLE,
    INTERNAL,
    OTHER,
)


def _questions(root: type[QuestionError]) -> Iterator[type[QuestionError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _questions(kind)


def for_question(kind: type[QuestionError]) -> ProblemType:
    """The problem type of one of the domain's errors."""
    about = "" if kind.__doc__ is None else inspect.cleandoc(kind.__doc__).replace("``", "`")
    return ProblemType(
        kind.slug,
        kind.status,
        kind.title,
        about or f"{kind.title}: `detail` says what is wrong, and `errors` what to change.",
    )


def all_types() -> dict[str, ProblemType]:
    """Every problem type, by slug: the service's own, and one for each of the domain's errors."""
    found = {kind.slug: kind for kind in _OWN}
    for question in _questions(QuestionError):
        found.setdefault(question.slug, for_question(question))
    return found
