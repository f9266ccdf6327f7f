"""What is seen of a capture while it runs, on standard error: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from engine.capture.supervisor import CaptureEvent
from service.cli.capture_text import event_line

_STEPS = {"capture": "captured", "verify": "replayed"}


@contextmanager
def shown_progress(*, verbose: bool) -> Iterator[Callable[[CaptureEvent], None]]:
    """A listener for a capture's events. ``verbose``: every event in a line, terminal or not."""
    if verbose:
        yield lambda event: _say(event_line(event.at, event.name, event.data))
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _bar() as listener:
            yield listener
    else:
        yield _line


def _line(event: CaptureEvent) -> None:
    """One line for each size that is done."""
    phase, step, moment = _parts(event)
    if moment == "size" and step in _STEPS:
        data = event.data
        _say(f"{phase} {_STEPS[step]}: size {data['size']}, {data['n']} of {data['of']}")


@contextmanager
def _bar() -> Iterator[Callable[[CaptureEvent], None]]:
    """One bar, which starts again for each phase and step and is gone at the end."""
    from tqdm.std import tqdm  # a tenth of a second, which only a terminal shall pay

    tqdm.monitor_interval = 0  # no thread beside the supervisor's pipes
    form = "{desc}: |{bar}| {n_fmt} of {total_fmt}{postfix}, {elapsed}"
    with tqdm(total=1, desc="starting", file=sys.stderr, leave=False, bar_format=form, **_columns()) as bar:
        totals: dict[str, int] = {}

        def show(event: CaptureEvent) -> None:
            if event.name == "verify.turn":  # one more replay of every graph, of both phases
                bar.set_description_str("replays of each graph", refresh=False)
                bar.set_postfix_str("", refresh=False)
                bar.total, bar.n = int(event.data["of"]), int(event.data["n"])
                bar.refresh()
                return
            phase, step, moment = _parts(event)
            if step not in _STEPS or moment not in ("begin", "size"):
                return
            if "sizes" in event.data:
                totals[phase] = len(event.data["sizes"])
            if bar.desc != f"{phase} {step}":
                bar.set_postfix_str("", refresh=False)
                bar.set_description_str(f"{phase} {step}", refresh=False)
                bar.reset(total=totals.get(phase, 1))
            if moment == "size":
                bar.set_postfix_str(f"size {event.data['size']}", refresh=False)
                bar.total, bar.n = int(event.data["of"]), int(event.data["n"])
            bar.refresh()

        yield show


def _columns() -> dict[str, Any]:
    """The terminal's own columns; 80 where it does not know them, and a bar would have none."""
    return {"dynamic_ncols": True} if os.get_terminal_size(sys.stderr.fileno()).columns else {"ncols": 80}


def _parts(event: CaptureEvent) -> tuple[str, str, str]:
    """Phase, step and moment of an event's name."""
    words = event.name.split(".")
    return (words[0], words[1], words[2]) if len(words) == 3 else ("", "", "")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
