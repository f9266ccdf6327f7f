"""The replays of one graph: other lengths, other slots, padding, prefixes, chunks, slots that others left dirty."""

from __future__ import annotations

from collections.abc import Callable

from engine.capture.runners.live import LiveBatches, Passes
from engine.capture.runners.requests import TRACK_INTERVAL

LONGEST_PREFIX = 16
"""Tokens already cached before a prefill, at most."""

DECODE_STEPS = 3

Scenario = tuple[str, Callable[[], Passes]]


def prefill_scenarios(live: LiveBatches, size: int, max_requests: int, max_context: int) -> list[Scenario]:
    """For a graph of ``size`` tokens and up to ``max_requests`` requests. Fresh requests get slots with old state."""

    def batch(tokens: int, requests: int, *, continued: Callable[[int], bool]) -> Passes:
        requests = max(1, min(requests, max_requests, tokens))
        prefixes = [live.number(1, LONGEST_PREFIX) if continued(i) else 0 for i in range(requests)]
        return live.extend(live.split(tokens, requests), prefixes)

    def with_empty_rows(tokens: int) -> Passes:
        """Every other request brings no token: what it has must stay as it is."""
        if max_requests < 2:
            return batch(tokens, 1, continued=lambda _: True)
        owners = max(1, min((max_requests + 1) // 2, tokens))
        lengths = [n for length in live.split(tokens, owners) for n in (length, 0)][:max_requests]
        return live.extend(lengths, [live.number(1, LONGEST_PREFIX) for _ in lengths])

    def long_prompt() -> Passes:
        prefix = live.number(0, 3)
        return live.extend_in_chunks(min(max_context - prefix, 2 * size + max(1, size // 2)), prefix, size)

    most = max_requests
    return [
        ("exact size, fresh requests", lambda: batch(size, 2, continued=lambda _: False)),
        (
            "padded, every other request continued",
            lambda: batch(max(1, size * 5 // 8), most, continued=lambda i: i % 2 == 1),
        ),
        ("one continued request", lambda: batch(max(1, size - 1), 1, continued=lambda _: True)),
        ("half empty, one fresh request", lambda: batch(max(1, size // 2), 1, continued=lambda _: False)),
        ("half empty, rows of length zero", lambda: with_empty_rows(max(1, size // 2))),
        ("a long prompt in chunks", long_prompt),
        ("exact size, every request continued", lambda: batch(size, most, continued=lambda _: True)),
    ]


def decode_scenarios(live: LiveBatches, size: int, max_context: int) -> list[Scenario]:
    """For a graph of ``size`` requests with up to ``max_context`` tokens each. The first request of each batch reaches
    a boundary at which state is kept."""

    def batch(requests: int, low: int, high: int, steps: int = 1) -> Passes:
        contexts = [live.number(low, high) for _ in range(max(1, requests))]
        at_boundary = [context for context in range(low, high + 1) if (context + 1) % TRACK_INTERVAL == 0]
        if at_boundary:
            contexts[0] = at_boundary[live.number(0, len(at_boundary) - 1)]
        return live.decode(contexts, steps)

    half = max(1, max_context // 2)
    return [
        ("every row live, short contexts", lambda: batch(size, 1, half)),
        ("padded", lambda: batch(size * 5 // 8, 1, max_context - 1)),
        ("every row live, long contexts", lambda: batch(size, half, max_context - 1)),
        ("one live row", lambda: batch(1, 1, max_context - 1)),
        ("half empty, several steps", lambda: batch(size // 2, 1, max_context - DECODE_STEPS, DECODE_STEPS)),
    ]
