"""One launch, asked for over HTTP: examined at once where that needs no waiting, and kept before it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.launch import Launch
from service.examining import Answered, examined
from service.problem_types import OVERLOADED
from service.problems import Problem
from service.security.trail import Asker
from service.store.keeper import KeeperFull
from service.wiring import Services

SMALL = 16_384
"""Bytes of a request up to which its launch is read on the event loop: a tenth of a millisecond."""


async def answer_one(wired: Services, request: Mapping[str, Any], by: Asker, launch: Launch | None) -> Answered:
    """The answer to a request, kept. ``launch``: what the request describes; None: a thread finds out, since the
    request is large.

    A launch is examined on the event loop, in a fraction of a millisecond, where its model and its release are at hand;
    else by a thread, so that a hub, a file or a large request keeps nobody waiting.

    Raises:
        QuestionError: the launch cannot be understood, or its model cannot be resolved.
        Problem: the service is overloaded.
    """
    identity = by.new_id("val")
    if launch is not None and wired.warm.knows(launch) and wired.resolver.at_hand(launch.model):
        answered, row = examined(wired, request, by, identity, launch)
    else:
        answered, row = await wired.examining.run(examined, wired, request, by, identity, launch)
        wired.warm.learn(answered.checked.launch)
    try:
        await wired.keeper.keep(row)
    except KeeperFull:
        raise Problem(
            OVERLOADED,
            "Too many answers wait to be written to the database; repeat the request in a few seconds.",
            headers={"Retry-After": "2"},
        ) from None
    return answered
