"""What the engine's launcher still checks once the arguments are resolved, before any process starts.

The prediction is the resolution's; a launch that resolves and fails here is refused all the same.

Source: SGLang 0.5.23, ``entrypoints/engine.py`` (``_launch_subprocesses``) and ``arg_groups/validation_hook.py``
(``check_server_args``).
"""

from __future__ import annotations

from collections.abc import Callable

from engine.sglang.launching import lora, pipeline, scheduling, server, watermark
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps import hisparse
from engine.verdict import EngineError

CHECKS: tuple[Callable[[Resolution], None], ...] = (
    server.widths,
    pipeline.run,
    server.ids,
    lora.run,
    scheduling.chunks,
    scheduling.multiplexing,
    server.workers,
    scheduling.priorities,
    hisparse.run,
    server.rest,
    watermark.run,
)
"""In the launcher's order."""


def launch_refusal(r: Resolution) -> EngineError | None:
    """The launcher's own refusal of a launch that resolved; None where it starts. Nothing of ``r`` is changed."""
    try:
        for check in CHECKS:
            check(r)
    except Refusal as refusal:
        return EngineError(stage=refusal.stage, type=refusal.type, message=refusal.message)
    return None
