"""Layers whose attention the prefill graph cannot address ("some layers do not apply Standard GQA")."""

from __future__ import annotations

from engine.sglang.loading.views import unseen_kinds, view_of
from engine.sglang.resolution import Resolution

_MIXERS = ("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM")
_PLACEHOLDERS = frozenset({"moe", "mlp"})
"""Until 0.5.18 a layer whose ``mixer`` has no attention is counted with a placeholder (``layer_setup.py``)."""


def missing(r: Resolution) -> str | None:
    """The class keeps its decoder layers where the engine does not look."""
    if view_of(r).without == "layers":
        return f"SGLang finds no decoder layers inside its class for {r.model.arch}"
    return None


def addressable(r: Resolution) -> str | None:
    """Some layer has no attention that the graph could stop at."""
    view = view_of(r)
    if r.args.pp_size > 1 and not r.since(0, 5, 19):
        return "a pipeline stage holds fewer layers than the model, and this release counts them against the whole"
    if r.args.pp_size > 1 and not view.stages:
        return f"a pipeline stage of {r.model.arch} does not hold every layer, and does not say which it holds"
    unseen = unseen_kinds(r, view)
    if not unseen:
        return None
    if not r.since(0, 5, 19) and r.model.arch in _MIXERS and _PLACEHOLDERS.issuperset(unseen):
        return None
    backend = r.graph["prefill"].backend
    if backend == "breakable" and view.moe.issuperset(unseen) and _sm(r) in view.hybrid_graph:
        return None
    named = " and ".join(kind.replace("_", " ") for kind in unseen)
    return f"SGLang's prefill graph cannot address the {named} layers of {r.model.arch}"


def _sm(r: Resolution) -> int:
    major, minor = r.hardware.capability
    return major * 10 + minor
