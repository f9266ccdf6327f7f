"""Facts that several steps derive from the arguments in the same way, as the engine's own helpers do.

Source: SGLang 0.5.23, ``runtime_context.py``, ``arg_groups/overrides.py`` and ``arg_groups/model_override_base.py``.
"""

from __future__ import annotations

import re
from typing import Any

from engine.sglang.resolution import Resolution

_URL = re.compile(r"(.+)://(.*)")


def attn_dp_enabled(args: Any) -> bool:
    """Whether attention runs data parallel (a scale-up joiner of elastic EP counts, even at width one).

    ``enable_dp_attention`` stays set in releases before 0.5.22 only, until their check of the widths.
    """
    return bool(args.attn_dp_size > 1 or args.ep_join_mode == "scale" or args.enable_dp_attention)


def num_dp_ranks(args: Any) -> int:
    """Data-parallel replicas times attention-DP groups."""
    return int(args.dp_size * args.attn_dp_size)


def attention_backends(args: Any) -> tuple[str | None, str | None]:
    """The attention backends of prefill and decode; a side that is not set takes the common one."""
    return (
        args.prefill_attention_backend or args.attention_backend,
        args.decode_attention_backend or args.attention_backend,
    )


def host_receive(r: Resolution) -> bool:
    """Whether a decode server receives KV pages in host memory. 0.5.22 turned the threshold around: 1 is off there."""
    threshold = r.args.disaggregation_decode_host_receive_threshold
    return bool(threshold < 1 if r.since(0, 5, 22) else threshold > 0)


def knows_architecture(r: Resolution) -> bool:
    """Whether the release has the model's architecture: what it does for one by name came with it."""
    return r.model.arch in r.model.lists.of("names")


def as_given(r: Resolution, name: str) -> Any:
    """The argument's value before any step changed it.

    Until 0.5.18 the engine's record keeps it to the end of the resolution, and some messages show it.
    """
    return next((decision.before for decision in r.ledger if decision.key == name), getattr(r.args, name))


def uses_mla(r: Resolution) -> bool:
    """Whether the engine runs the model through its MLA attention path."""
    return bool(r.model.attention_arch == "MLA")


def connector_type(path: str) -> str:
    """The scheme of a model path (``instance``, ``redis``, ``s3`` ...), or the empty text for a plain path."""
    found = _URL.match(path)
    return found.group(1) if found else ""


def gpu_memory_mib(r: Resolution) -> int:
    """The memory of one GPU as the engine reads it from ``nvidia-smi``, in MiB."""
    return r.hardware.memory_mib
