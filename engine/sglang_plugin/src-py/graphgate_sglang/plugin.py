"""Where the plugin takes hold: after the step of the engine that settles the CUDA-graph configuration.

The engine's loader logs and swallows whatever a plugin raises while it registers, so the hook raises the refusal.
"""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any

from graphgate_sglang import engine, rule, service, tables
from graphgate_sglang.rule import logger

STEP = "handle_cuda_graph_config"
OLDEST, NEWEST = (0, 5, 14), (0, 5, 23)
"""The releases whose behaviour is known. On another one only an explicit ``on`` changes or refuses anything."""


def register() -> None:
    """Set the hooks, in each process of the engine, unless it is unknown or has the rule itself. Raises nothing."""
    try:
        release = engine.release()
        how = mode(release)
        module, target = step() if how != "off" else (None, "")
        if how == "off":
            logger.debug("graphgate: switched off by GRAPHGATE_SGLANG.")
        elif module is None:
            logger.warning("graphgate: the layout of SGLang %s is unknown; no hooks are set.", release)
        elif has_rule(module):
            logger.debug("graphgate: SGLang %s has the rule itself; no hooks are set.", release)
        else:
            attach(target, how)
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


def step() -> tuple[Any, str]:
    """The step's module (None: unknown) and address: a function since 0.5.19, a method of ``ServerArgs`` before."""
    hook = _module("sglang.srt.arg_groups.cuda_graph_hook")
    if hasattr(hook, STEP):
        return hook, f"{hook.__name__}.{STEP}"
    arguments = _module("sglang.srt.server_args")
    known = hasattr(getattr(arguments, "ServerArgs", None), f"_{STEP}")
    return (arguments, f"{arguments.__name__}.ServerArgs._{STEP}") if known else (None, "")


def has_rule(module: Any) -> bool:
    """Whether the engine asks for hybrid models where it settles the graphs, or its prefill runner allocates tables."""
    runners = Path(importlib.import_module("sglang").__path__[0]).glob("srt/model_executor/**/prefill*runner.py")
    allocates = any("init_cuda_graph_state(" in path.read_text("utf-8") for path in runners)
    return allocates or "mambaish_config" in Path(module.__file__).read_text("utf-8")


def attach(target: str, how: str) -> None:
    """Have :func:`check` called after the step, by the resolution hooks that 0.5.20 brought, or the hook registry."""
    hooks = _module("sglang.srt.arg_groups.resolution_hooks")
    if hooks is not None:

        def around(server_args: Any, previous: Any) -> None:
            previous(server_args)
            check(server_args, how)

        hooks.register_resolution_hook(STEP)(around)
    else:
        registry = importlib.import_module("sglang.srt.plugins.hook_registry")
        registry.HookRegistry.register(target, lambda _, given: check(given, how), registry.HookType.AFTER)


def check(server_args: Any, how: str) -> None:
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
