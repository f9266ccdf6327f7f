"""The first request should not pay for reading tables."""

from __future__ import annotations

import gc
import logging

from engine.errors import QuestionError
from engine.launch import Launch, ModelRef
from engine.models.resolver import ModelResolver
from engine.preflight import check

_log = logging.getLogger("graphgate.warmup")
_YOUNG = 50_000
"""New objects after which cycles are looked for among them: some megabytes."""

_MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def warm_up(resolver: ModelResolver) -> None:
    """Examine one launch of the newest release, which reads the catalogue, the release's tables and the rules."""
    resolver.prepare()
    try:
        check(Launch(model=ModelRef(id=_MODEL)), resolver)
    except QuestionError:
        _log.warning("the launch to warm up with could not be examined", exc_info=True)


def collect_rarely() -> None:
    """Leave the tables that were read out of garbage collection, and collect less often.

    An examination makes thousands of small objects, and frees them by itself: looking for cycles among them after every
    seven hundred took a third of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 50)
