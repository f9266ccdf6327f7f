"""Where the plugin takes hold: when the engine has resolved its arguments, and before it loads anything.

Not earlier, because later steps switch graphs off too, and refuse launches in their own words. The engine's loader logs
and swallows whatever a plugin raises while it registers, so the hook raises the refusal.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from pathlib import Path
from typing import Any

from graphgate_sglang import engine, rule, service, tables
from graphgate_sglang.rule import logger

OLDEST, NEWEST = (0, 5, 14), (0, 5, 23)
"""The releases whose behaviour is known. On another one only an explicit ``on`` changes or refuses anything."""


def register() -> None:
    """Set the hooks, in each process of the engine, unless it is unknown or has the rule itself. Raises nothing."""
    try:
        release = engine.release()
        how = mode(release)
        settling, target = places() if how != "off" else (None, "")
        if how == "off":
            logger.debug("graphgate: switched off by GRAPHGATE_SGLANG.")
        elif settling is None:
            logger.warning("graphgate: the layout of SGLang %s is unknown; no hooks are set.", release)
        elif has_rule(settling):
            logger.debug("graphgate: SGLang %s has the rule itself; no hooks are set.", release)
        else:
            registry = importlib.import_module("sglang.srt.plugins.hook_registry")
            hook = functools.partial(resolved, how)
            registry.HookRegistry.register(target, hook, registry.HookType.AFTER)
            tables.guard()
            logger.info("graphgate guards SGLang %s (%s, after %s).", release, how, target)
    except Exception:
        logger.warning("graphgate: could not take hold of this SGLang; nothing is guarded.", exc_info=True)


def mode(release: str) -> str:
    """``on``, ``warn`` or ``off``: what ``GRAPHGATE_SGLANG`` says, or what the release makes of its absence."""
    said = os.environ.get("GRAPHGATE_SGLANG", "").strip().lower()
    if said in {"on", "warn", "off"}:
        return said
    if said:
        logger.warning("graphgate: GRAPHGATE_SGLANG is %r; known are on, warn and off. Taken as unset.", said)
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", release)
    return "on" if numbers and OLDEST <= tuple(map(int, numbers.groups())) <= NEWEST else "warn"


def places() -> tuple[Any, str]:
    """The module that settles the graphs (None: unknown), and the address of what resolves the arguments.

    Since 0.5.19 these are ``cuda_graph_hook.py`` and a function, before that both are in ``ServerArgs``.
    """
    settling, pipeline = (_module(f"sglang.srt.arg_groups.{name}") for name in ("cuda_graph_hook", "pipeline"))
    if hasattr(settling, "handle_cuda_graph_config") and hasattr(pipeline, "run_resolution_pipeline"):
        return settling, f"{pipeline.__name__}.run_resolution_pipeline"
    settling = _module("sglang.srt.server_args")
    arguments = getattr(settling, "ServerArgs", None)
    known = hasattr(arguments, "_handle_cuda_graph_config") and hasattr(arguments, "__post_init__")
    return (settling, f"{settling.__name__}.ServerArgs.__post_init__") if known else (None, "")


def has_rule(settling: Any) -> bool:
    """Whether the engine asks for hybrid models where it settles the graphs, or its prefill runner allocates tables."""
    runners = Path(importlib.import_module("sglang").__path__[0]).glob("srt/model_executor/**/prefill*runner.py")
    allocates = any("init_cuda_graph_state(" in path.read_text("utf-8") for path in runners)
    return allocates or "mambaish_config" in Path(settling.__file__).read_text("utf-8")


def resolved(how: str, _: Any, server_args: Any) -> None:
    """Act on the service's finding where one answers, else on the rule's. Raises ValueError to refuse, nothing else."""
    try:
        answer = service.ask(server_args)
        refuse, message = (answer[0] if answer else rule.finding(server_args)) or (False, "")
        if message and how == "warn":
            logger.warning("%s (Warn only: nothing is changed.)", message)
        elif message and not refuse:
            engine.disable_prefill(server_args)
            logger.warning("%s", message)
    except Exception:
        logger.warning("graphgate: the check failed; the launch goes on unchecked.", exc_info=True)
    else:
        if refuse and how != "warn":
            raise ValueError(message)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None
