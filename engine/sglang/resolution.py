"""The state of one resolution: what the engine's argument record holds, step after step, and who changed what.

A step is a function of a :class:`Resolution`. It reads ``r.args`` (the engine's own argument names), ``r.graph``,
``r.model``, ``r.hardware``, ``r.environment``, and changes values only through :meth:`Resolution.set` and
:meth:`Resolution.set_graph`, so that every change stands in the ledger with its reason. An engine refusal is
:class:`Refusal`, raised with the engine's own error type and message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.launch import Phase
from engine.verdict import Decision, Layer, PhaseGraph, Stage

if TYPE_CHECKING:
    from engine.hardware import Gpu
    from engine.sglang.engine_model import EngineModel
    from engine.sglang.releases import Release


class Refusal(Exception):
    """The engine refuses the launch: at which stage, with which exception type, in which words."""

    def __init__(self, type_: str, message: str, stage: Stage = "resolve") -> None:
        super().__init__(message)
        self.type = type_
        self.message = message
        self.stage: Stage = stage


class Arguments:
    """The engine's argument record: one attribute an argument."""


class GraphState:
    """One phase's graph settings while they are being resolved; names and units are the engine's."""

    __slots__ = (
        "backend",
        "bs",
        "full_prefill_max_req",
        "full_prefill_prefix_chunk_tokens",
        "max_bs",
        "max_context_size",
        "max_seq_len",
        "tc_compiler",
    )

    def __init__(self) -> None:
        self.backend: str | None = None
        self.max_bs: int | None = None
        self.bs: list[int] | None = None
        self.max_seq_len: int | None = None
        self.max_context_size: int | None = None
        self.full_prefill_max_req: int | None = None
        self.full_prefill_prefix_chunk_tokens: int | None = None
        self.tc_compiler: str | None = None

    def frozen(self) -> PhaseGraph:
        """The same as a value."""
        return PhaseGraph(
            self.backend,
            self.max_bs,
            None if self.bs is None else tuple(self.bs),
            self.max_seq_len,
            self.max_context_size,
            self.full_prefill_max_req,
            self.full_prefill_prefix_chunk_tokens,
            self.tc_compiler,
        )


class Resolution:
    """Everything a step may read, and the two ways in which it may change something.

    ``args`` holds every argument of the release by its own destination name, defaults filled in (the mapping is taken
    over); ``given`` the names
    of those the operator wrote; ``locked`` the (phase, key) pairs that the engine treats as explicitly set.
    """

    __slots__ = (
        "args",
        "environment",
        "given",
        "graph",
        "hardware",
        "ledger",
        "locked",
        "log",
        "model",
        "platform_defaults",
        "release",
        "step",
        "version",
    )

    def __init__(
        self,
        *,
        release: Release,
        model: EngineModel | Callable[[Resolution], EngineModel],
        hardware: Gpu,
        args: dict[str, Any],
        given: frozenset[str],
        environment: Mapping[str, str],
        platform_defaults: Mapping[Phase, Mapping[str, Any]],
    ) -> None:
        self.release = release
        self.version: Version = release.version
        self.hardware = hardware
        self.environment = environment
        self.platform_defaults = platform_defaults
        self.args: Any = Arguments()
        self.args.__dict__ = args  # taken over, not copied: there are hundreds
        # A function where the model has to see the arguments as they stand when the first step looks at it.
        self.model: EngineModel = model(self) if callable(model) else model
        self.given = given
        self.graph: dict[Phase, GraphState] = {"decode": GraphState(), "prefill": GraphState()}
        self.locked: set[tuple[str, str]] = set()
        self.ledger: list[Decision] = []
        self.log: list[str] = []
        self.step: Step | None = None

    def since(self, *version: int) -> bool:
        """Whether the launch's release is that one or a newer one: ``r.since(0, 5, 23)``."""
        return self.version >= version

    def set(self, name: str, value: Any, why: str, *, layer: Layer = "engine") -> None:
        """Give the argument ``name`` another value; a change of value becomes a decision."""
        values = self.args.__dict__
        before = values.get(name)
        if before == value and type(before) is type(value):
            return
        values[name] = value
        self._decide(name, before, value, why, layer)

    def fill(self, name: str, value: Any) -> None:
        """Fill in an argument as the engine does where nothing is given.

        For arguments that later steps read, but on which no graph and no reported value depends: it is no decision.
        """
        self.args.__dict__[name] = value

    def set_graph(self, phase: Phase, key: str, value: Any, why: str, *, layer: Layer = "engine") -> None:
        """Give one graph setting another value; a change of value becomes a decision."""
        state = self.graph[phase]
        before = getattr(state, key)
        if before == value and type(before) is type(value):
            return
        setattr(state, key, value)
        self._decide(f"{phase}.{key}", before, value, why, layer)

    def warn(self, message: str) -> None:
        """A warning that the engine prints here."""
        self.log.append(message)

    def _decide(self, key: str, before: Any, after: Any, why: str, layer: Layer) -> None:
        step = self.step
        name, source = ("", "") if step is None else (step.name, step.source)
        self.ledger.append(Decision(name, layer, key, before, after, why, source))  # by position: it is twice as fast


Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One decision of the engine, in the engine's order.

    ``source`` is the engine file and function it follows. ``since`` and ``until`` bound the releases that take it
    (both inclusive; None: from the first, to the newest known).
    """

    name: str
    run: Callable[[Resolution], None]
    source: str
    since: Version | None = None
    until: Version | None = None

    def applies(self, version: Version) -> bool:
        """Whether the release of that version takes this step."""
        return (self.since is None or version >= self.since) and (self.until is None or version <= self.until)
