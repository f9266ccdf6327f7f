"""Whatever the OpenAPI document allows, and whatever it forbids, is sent to a running server, with a key and without:
no fault of the service, no answer that the document does not describe, no success for nobody."""

from __future__ import annotations

import json
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from api_tests.material import ROOT
from api_tests.security.guarded import Guarded
from api_tests.service.launches import ACCEPTED, SMALL_CAPTURE
from service.batching import ADDRESS as BATCH
from service.security.scopes import ADDRESSES, OPEN

DOCUMENT: dict[str, Any] = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))


def loaded(*, coverage: bool) -> schemathesis.BaseSchema:
    """The document as the library takes it; ``coverage``: each bound and each form of every parameter is tried too."""
    generation = {"deterministic": True, "with-security-parameters": False, "no-shrink": True}
    phases = {"coverage": {"enabled": coverage}, "examples": {"enabled": True}}
    config = {
        "suppress-health-check": ["all"],
        "generation": generation,
        "phases": phases,
        "cache": {"enabled": False},
    }
    return schemathesis.openapi.from_dict(DOCUMENT, config=SchemathesisConfig.from_dict(config))


schema = loaded(coverage=True)
plain = loaded(coverage=False)
QUICK = settings(deadline=None, max_examples=5, database=None, suppress_health_check=list(HealthCheck))
FEW = settings(QUICK, max_examples=2)

checks.load_all_checks()
POSITIVE = checks.CHECKS.get_one("positive_data_acceptance")
NEGATIVE = checks.CHECKS.get_one("negative_data_rejection")


MADE = {("POST", "/v1/validations"): ACCEPTED, ("POST", "/v1/captures"): {**ACCEPTED, "capture": SMALL_CAPTURE}}


def left_out(case: Any) -> list[Any]:
    """Checks that do not hold on purpose: a launch may be well formed and still be refused, for instance because no
    such model is known; and a batch is answered whatever single launches in it are, each in its place."""
    return [POSITIVE, NEGATIVE] if case.operation.path == BATCH else [POSITIVE]


def bearer(guarded: Guarded, name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {guarded.keys[name]}"}


@schema.parametrize()
@QUICK
def test_with_a_key_no_fault_and_no_answer_that_is_not_described(case: Any, guarded: Guarded) -> None:
    case.call_and_validate(
        base_url=guarded.server.url,
        headers=bearer(guarded, "admin"),
        excluded_checks=left_out(case),
        timeout=30,
    )


@plain.parametrize()
@FEW
def test_without_a_key_nothing_succeeds(case: Any, guarded: Guarded) -> None:
    needed = ADDRESSES.get((case.method, case.operation.path))
    for headers in ({}, {"X-API-Key": "gg_aaaaaaaa_" + "A" * 43}):
        answer = case.call(base_url=guarded.server.url, headers=headers, timeout=30)
        if needed is None:  # a method that the address does not take
            assert answer.status_code in (204, 405), answer.text
            continue
        assert needed == OPEN or answer.status_code == 401, answer.text
        assert answer.status_code < 500
        case.validate_response(answer, checks=[response_schema_conformance, status_code_conformance])


@plain.parametrize()
@FEW
def test_with_a_key_of_another_scope_nothing_succeeds(case: Any, guarded: Guarded) -> None:
    needed = ADDRESSES.get((case.method, case.operation.path), OPEN)
    answer = case.call(base_url=guarded.server.url, headers=bearer(guarded, "validate"), timeout=30)
    assert answer.status_code != 401
    assert needed in (OPEN, "validate") or answer.status_code == 403, answer.text


def test_what_is_made_is_found_cancelled_and_followed(guarded: Guarded) -> None:
    """Stateful: along the document's links."""
    machine = plain.as_state_machine()

    class WithKey(machine):  # type: ignore[misc, valid-type] # a class that the library makes of the document
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:  # noqa: ARG002 - the library calls it so
            return {"base_url": guarded.server.url, "headers": bearer(guarded, "admin"), "timeout": 30}

        def before_call(self, case: Any) -> None:
            """Posts make something, so that there are links to follow; a stream of events has an end."""
            if (case.method, case.operation.path) in MADE:
                case.body = MADE[case.method, case.operation.path]
            if case.operation.path.endswith("/events") and case.path_parameters["id"].startswith("cap_"):
                with guarded.client("admin") as client:
                    client.delete(f"/v1/captures/{case.path_parameters['id']}")

        def after_call(self, response: Any, case: Any) -> None:
            seen.append((case.method, case.operation.path, response.status_code))

        def validate_response(self, response: Any, case: Any, **kwargs: Any) -> None:
            case.validate_response(response, excluded_checks=left_out(case), transport_kwargs=kwargs or None)

    seen: list[tuple[str, str, int]] = []
    WithKey.run(settings=settings(QUICK, max_examples=16, stateful_step_count=6))
    followed = {path.split("/")[2] for _, path, status in seen if "{id}" in path and status in (200, 202, 304)}
    assert {"validations", "captures"} <= followed, "which links are followed is left to chance, but not whether"
    assert {status for _, _, status in seen if status >= 500} == set()
