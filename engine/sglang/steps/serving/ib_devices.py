"""InfiniBand devices: the engine looks them up on the node; from here only their form can be judged."""

from __future__ import annotations

import json

from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid

_SHAPE = "Invalid format: keys must be integers (or string representations of integers) and values must be strings"


def check(r: Resolution, given: str | None) -> None:
    """Warn where none are given; refuse what no node could accept.

    Whether the node has them stays open. Source: SGLang 0.5.23, ``arg_groups/validation_hook.py: validate_ib_devices``.
    """
    if given is None:
        r.warn("WARNING: No IB devices specified for Mooncake backend, falling back to auto discovery.")
        return
    text = given.strip()
    if not text:
        raise invalid("No valid IB devices specified")
    if text.endswith(".json"):
        return
    if not text.startswith("{"):
        _group(text, "all GPUs")
        return
    try:
        mapping = json.loads(text)
    except json.JSONDecodeError:
        raise invalid(f"Invalid JSON mapping: {text}") from None
    for gpu, devices in mapping.items():
        if not str(gpu).isdigit() or not isinstance(devices, str):
            raise invalid(_SHAPE)
    if not mapping:
        raise invalid("No valid GPU mappings found in JSON")
    for gpu, devices in mapping.items():
        _group(devices, f"GPU {gpu}")


def _group(text: str, context: str) -> None:
    if not any(part.strip() for part in text.split(",")):
        raise invalid(f"No valid IB devices specified for {context}")
