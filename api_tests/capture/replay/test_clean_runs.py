"""Two hundred sound captures over random shapes: none is called a mismatch, none refused that need not be."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the worker extra is not installed")

from api_tests.capture.inside import captured
from api_tests.capture.replay.random_jobs import ATTENDING, OF_ONE_MODEL, OTHER, RECURRENT, random_job, wrong

RUNS, BLOCK = 200, 25


@pytest.mark.parametrize("first", range(0, RUNS, BLOCK))
def test_no_false_mismatch(first: int) -> None:
    for seed in range(first, first + BLOCK):
        job = random_job(seed)
        assert wrong(job, captured(job)) == []


def test_the_runs_cover_what_captures_differ_in() -> None:
    jobs = [random_job(seed) for seed in range(RUNS)]
    there_are = {*ATTENDING, *RECURRENT, *OTHER, *OF_ONE_MODEL.values()}
    assert {kind for job in jobs for kind in job.shape.layer_kinds} == there_are
    assert {job.shape.style.variant for job in jobs} == {"", *OF_ONE_MODEL}
    assert {job.options.allocation for job in jobs} == {"per-phase", "decode-owned"}
    assert {plan.backend for job in jobs for plan in job.plans} == {"full", "breakable", "tc_piecewise"}
    assert {job.page_size for job in jobs} == {1, 2, 4, 8}
    assert {job.plans[0].max_requests for job in jobs} == {1, 2, 3, 4, 5}
    assert len({job.shape for job in jobs}) == RUNS
