"""IQuest Q1: its draft is a checkpoint of its own."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def run(r: Resolution) -> None:
    """Draft path and chain. The draft's own config.json is not at hand: its shapes are taken to match."""
    args = r.args
    if r.model.arch != "IQuestQ1ForCausalLM" or not r.since(0, 5, 21):
        return
    if args.speculative_draft_model_path in (None, args.model_path):
        raise invalid("IQuest Q1 requires an independent draft model path.")
    if args.speculative_token_map is not None:
        raise invalid("MTP uses its own full-vocabulary embedding and head.")
    steps = args.speculative_num_steps
    if steps is None:
        return
    if steps < 1:
        raise invalid("MTP requires positive speculative_num_steps.")
    if args.speculative_eagle_topk not in (None, 1):
        raise invalid("MTP requires --speculative-eagle-topk 1.")
    if args.speculative_num_draft_tokens not in (None, steps + 1):
        raise invalid("MTP verification width must equal draft steps + 1.")
    r.set("speculative_eagle_topk", 1, "a chain")
    r.set("speculative_num_draft_tokens", steps + 1, "one more than the steps")
