"""The three forms in which the engine's steps refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from engine.sglang.resolution import Refusal, Resolution

_PYTHON = (TypeError, ZeroDivisionError, IndexError, KeyError, AttributeError)


def invalid(message: str) -> Refusal:
    """A ValueError of the engine, to be raised."""
    return Refusal("ValueError", message)


def require(holds: object, message: str = "") -> None:
    """An assertion of the engine.

    Raises:
        Refusal: AssertionError, where it does not hold.
    """
    if not holds:
        raise Refusal("AssertionError", message)


def unguarded(run: Callable[[Resolution], None]) -> Callable[[Resolution], None]:
    """For a step in which the engine computes with values that it has not checked: its failure is then Python's own.

    Nothing else is caught by it: a mistake in such a step shows as a refusal of these types that the engine's own
    answers do not have.
    """

    @wraps(run)
    def step(r: Resolution) -> None:
        try:
            run(r)
        except _PYTHON as error:
            raise Refusal(type(error).__name__, str(error)) from error

    return step
