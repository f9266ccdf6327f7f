"""How configs write down what each layer is: one spelling, one file.

:data:`SPELLINGS` is the order in which they are tried; the first that a config uses answers. A list of every layer
comes before a rule of thumb, and a rule before a default.
"""

from __future__ import annotations

from engine.models.families import (
    attention_indices,
    attention_period,
    by_model_type,
    defaults,
    inkling,
    interval,
    kimi_linear,
    layer_groups,
    named_layers,
    number_list,
    pattern_string,
    plamo,
    windows,
    zaya,
)
from engine.models.families.base import Layers, Spelling, Subject

SPELLINGS: tuple[Spelling, ...] = (
    inkling.read,
    kimi_linear.read,
    named_layers.read,
    pattern_string.read,
    number_list.read,
    interval.read,
    attention_period.read,
    attention_indices.read,
    layer_groups.read,
    plamo.read,
    zaya.read,
    by_model_type.read,
    defaults.read,
    windows.read,
)


def layers_of(subject: Subject) -> Layers:
    """The layers of a text config, by the first spelling that it uses.

    Raises:
        ConfigUnreadable: the fields that should say so contradict each other.
    """
    for spelling in SPELLINGS:
        layers = spelling(subject)
        if layers is not None:
            return layers
    raise AssertionError("the last spelling answers every config")
