"""Auxiliary hidden states without a draft: the speculative algorithm then only names how they are captured."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid

_METHODS = ("EAGLE3", "DFLASH", "DSPARK")
_FLAG = "--enable-return-aux-hidden-states"
_LAYERS = "--return-aux-hidden-state-layer-ids"


def run(r: Resolution) -> None:
    """Check the flags; afterwards nothing drafts."""
    args = r.args
    layers = args.return_aux_hidden_state_layer_ids
    if not args.enable_return_aux_hidden_states:
        if layers is not None:
            raise invalid(f"{_LAYERS} requires {_FLAG}.")
        return
    method = (args.speculative_algorithm or "").upper()
    if method not in _METHODS:
        raise invalid(
            f"{_FLAG} needs --speculative-algorithm EAGLE3, DFLASH or DSPARK to name the capture convention, got "
            f"{args.speculative_algorithm!r}."
        )
    if args.speculative_draft_model_path is not None:
        raise invalid(f"{_FLAG} captures without a draft; drop --speculative-draft-model-path.")
    if args.pp_size != 1:
        raise invalid(
            f"{_FLAG} only supports pp_size == 1: the capture hooks only see the layers on the last pipeline rank."
        )
    if method != "EAGLE3" and not layers:
        raise invalid(f"{_FLAG} with {method} requires {_LAYERS}.")
    if layers is not None:
        if len(layers) == 0:
            raise invalid(f"{_LAYERS} must not be empty.")
        if any(layer < 0 for layer in layers):
            raise invalid(f"{_LAYERS} must be non-negative, got {list(layers)}.")
        if len(set(layers)) != len(layers):
            raise invalid(f"{_LAYERS} must not repeat a layer, got {list(layers)}.")
    why = f"{_FLAG} captures without drafting"
    r.set("speculative_algorithm", None, why)
    r.set("aux_hidden_state_capture", method.lower(), why)
