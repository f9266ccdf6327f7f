"""The optional folder of test material beside a checkout; tests that need it skip, with a reason, without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MATERIAL = Path(os.environ.get("GRAPHGATE_MATERIAL") or ROOT.parent / "shared")


def material(*parts: str) -> Path:
    """The path below the material folder; skips the calling test where it does not exist."""
    path = MATERIAL.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs the optional test material: {'/'.join(parts)} (set GRAPHGATE_MATERIAL to its folder)")
    return path
