"""Pages of one token, where nothing asked for larger ones.

Source: SGLang 0.5.23, ``arg_groups/overrides.py`` (``_page_size_default``).
"""

from __future__ import annotations

from engine.sglang.resolution import Resolution


def run(r: Resolution) -> None:
    """Fill in the page size."""
    if r.args.page_size is None:
        r.set("page_size", 1, "no backend asks for larger pages", layer="engine-default")
