"""What a layer family provides: one class, in three steps of which only the middle one touches state.

``project`` and ``output`` are per token and are always inside a graph; ``mix`` is what a breakable graph runs eagerly
between its segments.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from engine.capture.attention.paged import PagedAccess
from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.recorders.base import break_here
from engine.capture.shape import ModelShape

if TYPE_CHECKING:
    from engine.capture.attention.base import AttentionBackend


class UnsupportedLayer(Exception):
    """The reference engine has no kernel for a layer of the model."""


class Mixing(nn.Module):
    """What stands in a layer's mixer place: a mixer, or several in a row (ZAYA, Inkling)."""

    @abstractmethod
    def forward(self, hidden: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        """``[T, hidden]`` to ``[T, hidden]``."""


class Mixer(Mixing):
    """One token-mixing layer. ``layer`` is its index in the model; ``label`` the family's name in messages.

    The mixers of one layer share its pools: names of what they keep must differ.
    """

    label: ClassVar[str] = ""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, hidden: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        inputs = self.project(hidden, positions)
        return self.output(break_here(lambda: backend.forward(self, inputs)), inputs)

    @abstractmethod
    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:
        """``[T, hidden]`` to what ``mix`` needs, ``[T, ...]`` each."""

    @abstractmethod
    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        """What ``mix`` gave, with what ``project`` gave, to ``[T, hidden]``."""


class PagedMixer(Mixer):
    """Keeps something for every token."""

    @abstractmethod
    def token_shapes(self, dtype: torch.dtype) -> Shapes:
        """What it keeps for one token."""

    @abstractmethod
    def mix(self, inputs: Sequence[Tensor], access: PagedAccess) -> Tensor:
        """Write this pass's tokens, attend to the context."""


class RecurrentMixer(Mixer):
    """Keeps something for every request."""

    @abstractmethod
    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        """What it keeps for one request: recurrent state in float32, the engine's default; windows in ``dtype``."""

    @abstractmethod
    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        """Advance every request's state over its new tokens."""


Factory = Callable[[ModelShape, int], Mixing]
_FACTORIES: dict[str, Factory] = {}
F = TypeVar("F", bound=Factory)


def family(*kinds: str) -> Callable[[F], F]:
    """Register a factory ``(shape, layer index) -> mixer`` for these layer kinds.

    ``variant:kind`` is the kind as the models of that :attr:`engine.capture.style.Style.variant` have it.
    """

    def register(factory: F) -> F:
        for kind in kinds:
            _FACTORIES[kind] = factory
        return factory

    return register


def factories() -> Mapping[str, Factory]:
    """Every registered kind; the files of ``models/families`` register themselves when they are imported."""
    return _FACTORIES
