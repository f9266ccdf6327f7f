"""The replays of one graph: other lengths, other slots, padding, prefixes, slots that others left dirty."""

from __future__ import annotations

from collections.abc import Callable

from engine.capture.attention.batch import ForwardBatch
from engine.capture.runners.live import LiveBatches

LONGEST_PREFIX = 16
"""Tokens already cached before a prefill, at most."""

Scenario = tuple[str, Callable[[], ForwardBatch]]


def prefill_scenarios(live: LiveBatches, size: int, max_requests: int) -> list[Scenario]:
    """For a graph of ``size`` tokens and up to ``max_requests`` requests. Fresh requests get slots with old state."""

    def batch(tokens: int, requests: int, *, continued: Callable[[int], bool]) -> ForwardBatch:
        requests = max(1, min(requests, max_requests, tokens))
        prefixes = [live.number(1, LONGEST_PREFIX) if continued(i) else 0 for i in range(requests)]
        return live.extend(live.split(tokens, requests), prefixes)

    most = max_requests
    return [
        ("exact size, fresh requests", lambda: batch(size, 2, continued=lambda _: False)),
        (
            "padded, every other request continued",
            lambda: batch(max(1, size * 5 // 8), most, continued=lambda i: i % 2 == 1),
        ),
        ("one continued request", lambda: batch(max(1, size - 1), 1, continued=lambda _: True)),
        ("half empty, one fresh request", lambda: batch(max(1, size // 2), 1, continued=lambda _: False)),
        ("exact size, every request continued", lambda: batch(size, most, continued=lambda _: True)),
    ]


def decode_scenarios(live: LiveBatches, size: int, max_context: int) -> list[Scenario]:
    """For a graph of ``size`` requests with up to ``max_context`` tokens each."""

    def batch(requests: int, low: int, high: int) -> ForwardBatch:
        return live.decode([live.number(low, high) for _ in range(max(1, requests))])

    half = max(1, max_context // 2)
    return [
        ("every row live, short contexts", lambda: batch(size, 1, half)),
        ("padded", lambda: batch(size * 5 // 8, 1, max_context - 1)),
        ("every row live, long contexts", lambda: batch(size, half, max_context - 1)),
        ("one live row", lambda: batch(1, 1, max_context - 1)),
    ]
