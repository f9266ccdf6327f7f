"""Captured batches that exceed an all-to-all workspace.

## What it does
Looks at launches that the engine refuses because a decode graph, a prefill bucket or a chunk has more tokens than the
all-to-all workspace of one rank holds.

## Why it is bad
The engine stops while it resolves the arguments. The message carries the numbers; which option to lower depends on
which forward is the largest.

## What to do
Use the suggested launch, which lowers the captured batch to what fits, or raise the variable that the message names.

## Exceptions
None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph, with_option

_CAPACITY = re.compile(r"(?:NUM_MAX_TOKENS_PER_RANK|NUM_MAX_DISPATCH_TOKENS_PER_RANK)=(\d+)|capacity=(\d+)")
_ABOUT = ("TOKENS_PER_RANK", "max_num_tokens", "token budget")
_LEAST = 1


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for such a refusal, with a smaller batch where the message gives a capacity."""
    error = examined.predicted.prediction.error
    if error is None or error.stage == "parse" or not any(words in error.message for words in _ABOUT):
        return
    message = f"SGLang {examined.release} refuses a batch that its all-to-all workspace does not hold: {error.message}"
    remedy = "Lower the captured batch, or raise the variable that the engine's message names."
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=_smaller(examined, error.message)))


def _smaller(examined: Examined, message: str) -> tuple[str, ...] | None:
    """The launch with decode graphs, or chunks, of the capacity that the message gives."""
    found = [int(a or b) for a, b in _CAPACITY.findall(message)]
    if not found or max(found) < _LEAST:
        return None
    capacity, release = max(found), examined.predicted.release
    if "prefill" in message:
        tokens = capacity * _ranks(examined)
        return with_option(examined.launch.arguments, release, "chunked_prefill_size", tokens)
    drafts = max(1, examined.args.speculative_num_draft_tokens or 1) if examined.args.speculative_algorithm else 1
    arguments = with_graph(examined.launch.arguments, release, "decode", "bs")
    return with_graph(arguments, release, "decode", "max_bs", max(1, capacity // drafts))


def _ranks(examined: Examined) -> int:
    """Groups of attention data parallelism, among which a chunk is divided."""
    return max(1, int(examined.args.attn_dp_size or 1))


RULE = Rule(
    id="GG904",
    slug="a2a-token-budget",
    title="captured batches above the capacity of a MoE all-to-all workspace",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("A2A_TOKEN_BUDGET",),
    phase=None,
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(30010, "the workspace of the all-to-all backend is too small for the captured batch"),
        source(
            "0.5.23",
            "arg_groups/moe_hook.py, validate_flashinfer_a2a_token_budget",
            "capacity against the largest forward",
        ),
        source("0.5.23", "arg_groups/mega_moe_hook.py", "MegaMoE's buffer against decode and prefill"),
    ),
    check=check,
    refusals=True,
)
