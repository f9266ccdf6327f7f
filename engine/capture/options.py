"""How a capture is to be made: the ``capture`` part of a capture request, validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from engine.errors import InvalidLaunch
from engine.launch import PHASES, Phase

Allocation = Literal["decode-owned", "per-phase"]
Device = Literal["auto", "cpu", "cuda"]
Engine = Literal["reference", "sglang"]

CPU_MEMORY_MIB = 4096
MAX_TIMEOUT_S = 3600.0
MAX_SIZES = 256
MAX_LAYERS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """How a capture is to be made.

    ``phases``: which of the two are captured; the order is always the engine's.
    ``allocation``: who allocates the static tables of a stateful attention backend: ``decode-owned`` (only the decode
    runner, as SGLang 0.5.15 to 0.5.23 do) or ``per-phase`` (each runner its own, before it captures).
    ``sizes``: None (chosen from the plan by the rule of :func:`engine.capture.job.choose_sizes`), how many of the
    plan's sizes, or the sizes themselves (tokens for prefill, requests for decode; a list goes for every phase).
    ``device``: ``auto`` takes a GPU where there is one.
    ``memory_mib``: MiB that the capture may take beyond what an idle process takes; None: 4096 on a CPU, all of a GPU.
    With ``device`` cuda the model's dimensions are kept as far as they fit in it.
    ``timeout_s``: seconds from process start to report.
    ``layers``: how many layers the scaled model has; None: chosen by the rule of
    :func:`engine.capture.shape.scaled_shape`.
    ``engine``: ``reference`` builds the scaled model here; ``sglang`` starts the engine that is installed on a GPU
    worker, with dummy weights, fewer layers, and graphgate's plugin in it.
    """

    phases: tuple[Phase, ...] = ("prefill", "decode")
    allocation: Allocation = "decode-owned"
    sizes: int | tuple[int, ...] | None = None
    device: Device = "auto"
    memory_mib: int | None = None
    timeout_s: float = 120.0
    layers: int | None = None
    engine: Engine = "reference"

    def __post_init__(self) -> None:
        if not self.phases or len(set(self.phases)) != len(self.phases) or set(self.phases) - set(PHASES):
            raise _invalid("phases", f"is {list(self.phases)!r}", "Name prefill, decode, or both, each once.")
        if self.allocation not in get_args(Allocation):
            raise _invalid("allocation", f"is {self.allocation!r}", 'Write "decode-owned" or "per-phase".')
        if self.device not in get_args(Device):
            raise _invalid("device", f"is {self.device!r}", 'Write "auto", "cpu" or "cuda".')
        self._check_sizes()
        if self.memory_mib is not None and not (_is_int(self.memory_mib) and self.memory_mib > 0):
            raise _invalid("memory_mib", f"is {self.memory_mib!r}", "Give a positive number of MiB.")
        if not (_is_number(self.timeout_s) and 0 < self.timeout_s <= MAX_TIMEOUT_S):
            raise _invalid("timeout_s", f"is {self.timeout_s!r}", f"Give seconds above 0, at most {MAX_TIMEOUT_S:g}.")
        if self.layers is not None and not (_is_int(self.layers) and 1 <= self.layers <= MAX_LAYERS):
            raise _invalid("layers", f"is {self.layers!r}", f"Give a number of layers from 1 to {MAX_LAYERS}.")
        if self.engine not in get_args(Engine):
            raise _invalid("engine", f"is {self.engine!r}", 'Write "reference" or "sglang".')

    def _check_sizes(self) -> None:
        sizes = self.sizes
        if sizes is None:
            return
        if isinstance(sizes, tuple):
            good = 0 < len(sizes) <= MAX_SIZES and all(_is_int(s) and s > 0 for s in sizes)
        else:
            good = _is_int(sizes) and 0 < sizes <= MAX_SIZES
        if not good:
            raise _invalid(
                "sizes", f"is {sizes!r}", f"Give how many sizes (1 to {MAX_SIZES}), or a list of positive sizes."
            )

    def to_dict(self) -> dict[str, Any]:
        return {
            "phases": list(self.phases),
            "allocation": self.allocation,
            "sizes": list(self.sizes) if isinstance(self.sizes, tuple) else self.sizes,
            "device": self.device,
            "memory_mib": self.memory_mib,
            "timeout_s": self.timeout_s,
            "layers": self.layers,
            "engine": self.engine,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> CaptureOptions:
        """The options of a request body's ``capture`` object; absent and null fields take their defaults.

        Raises:
            InvalidLaunch: naming the field, for an unknown field or a value of the wrong form.
        """
        known = cls.__slots__
        unknown = sorted(set(value) - set(known))
        if unknown:
            raise _invalid(str(unknown[0]), "is not an option of a capture", f"Known: {', '.join(known)}.")
        given = {key: item for key, item in value.items() if item is not None}
        for key in ("phases", "sizes"):
            if isinstance(given.get(key), list):
                given[key] = tuple(given[key])
        if "phases" in given and not (
            isinstance(given["phases"], tuple) and all(isinstance(p, str) for p in given["phases"])
        ):
            raise _invalid("phases", f"is {given['phases']!r}", "Give a list of prefill, decode, or both.")
        return cls(**given)


def _invalid(field: str, what: str, remedy: str) -> InvalidLaunch:
    return InvalidLaunch(f"The capture's {field} {what}.", remedy=remedy, field=f"capture.{field}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
