"""The sampling backend where none is named.

Source: SGLang 0.5.23, ``arg_groups/overrides.py`` (``_sampling_backend_default``).
"""

from __future__ import annotations

from engine.sglang.resolution import Resolution


def run(r: Resolution) -> None:
    """FlashInfer, which these releases' images hold."""
    if r.args.sampling_backend is None:
        r.set("sampling_backend", "flashinfer", "FlashInfer is there", layer="engine-default")
