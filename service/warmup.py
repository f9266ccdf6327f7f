"""The first request should not pay for reading tables."""

from __future__ import annotations

import logging

from engine.errors import QuestionError
from engine.launch import Launch, ModelRef
from engine.models.resolver import ModelResolver
from engine.preflight import check

_log = logging.getLogger("graphgate.warmup")
_MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def warm_up(resolver: ModelResolver) -> None:
    """Examine one launch of the newest release, which reads the catalogue, the release's tables and the rules."""
    try:
        check(Launch(model=ModelRef(id=_MODEL)), resolver)
    except QuestionError:
        _log.warning("the launch to warm up with could not be examined", exc_info=True)
