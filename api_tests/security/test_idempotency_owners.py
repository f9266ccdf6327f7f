"""An idempotency key is its caller's: the same words in another's request mean nothing, and show nothing."""

from __future__ import annotations

import uuid

from api_tests.security.guarded import Guarded
from api_tests.service.launches import ACCEPTED, REJECTED, SMALL_CAPTURE
from api_tests.service.test_bad_requests import assert_problem


def test_a_key_is_its_callers_alone(guarded: Guarded) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    with guarded.client("alice") as alice, guarded.client("bob") as bob:
        hers = alice.post("/v1/validations", json=ACCEPTED, headers=key)
        his = bob.post("/v1/validations", json=REJECTED, headers=key)
        assert (hers.json()["verdict"], his.json()["verdict"]) == ("accepted", "rejected")
        assert "idempotency-replayed" not in his.headers
        again = alice.post("/v1/validations", json=ACCEPTED, headers=key)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.content == hers.content
        assert bob.get(f"/v1/validations/{hers.json()['id']}").status_code == 404


def test_a_key_helps_nobody_who_may_not(guarded: Guarded) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    body = {**ACCEPTED, "capture": SMALL_CAPTURE}
    with guarded.client("validate") as some, guarded.client() as nobody, guarded.client("alice") as alice:
        made = alice.post("/v1/captures", json=body, headers=key)
        assert made.status_code == 202
        assert_problem(some.post("/v1/captures", json=body, headers=key), 403, "insufficient-scope")
        assert_problem(nobody.post("/v1/captures", json=body, headers=key), 401, "unauthenticated")
        alice.delete(made.headers["location"])


def test_batches_and_tags_ask_who_calls_too(guarded: Guarded) -> None:
    with guarded.client("alice") as alice, guarded.client("bob") as bob, guarded.client("capture") as other:
        batch = {"validations": [ACCEPTED, REJECTED]}
        made = alice.post("/v1/validations/batch", json=batch).json()["items"][0]["validation"]["id"]
        tag = alice.get(f"/v1/validations/{made}").headers["etag"]
        assert alice.get(f"/v1/validations/{made}", headers={"If-None-Match": tag}).status_code == 304
        assert bob.get(f"/v1/validations/{made}", headers={"If-None-Match": tag}).status_code == 404
        assert bob.get(f"/v1/validations/{made}", headers={"If-None-Match": "*"}).status_code == 404
        assert_problem(other.post("/v1/validations/batch", json=batch), 403, "insufficient-scope")
