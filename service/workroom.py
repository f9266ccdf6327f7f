"""A bounded room of threads for work that blocks, so that it can neither stop the event loop nor pile up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from service.problem_types import OVERLOADED
from service.problems import Problem

P = ParamSpec("P")
T = TypeVar("T")


class Workroom:
    """At most ``threads`` calls at a time, at most ``waiting`` more waiting for one of them."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._limiter = CapacityLimiter(threads)
        self._waiting = waiting

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the call returns.

        Raises:
            Problem: too many calls are waiting already.
        """
        if self._limiter.available_tokens <= 0 and self._limiter.statistics().tasks_waiting >= self._waiting:
            raise Problem(
                OVERLOADED,
                "Every thread is busy and the queue before them is full; repeat the request in a few seconds.",
                headers={"Retry-After": "2"},
            )
        return await anyio.to_thread.run_sync(partial(call, *args, **kwargs), limiter=self._limiter)
