"""The policy that the command line holds launches to: the file that GRAPHGATE_POLICY names."""

from __future__ import annotations

import os
from pathlib import Path

from engine.modes import Gate, gate_at


def gate() -> Gate:
    """The policy at the command line.

    Raises:
        InvalidPolicy: the file cannot be used.
    """
    named = os.environ.get("GRAPHGATE_POLICY")
    return gate_at("cli", Path(named) if named else None)
