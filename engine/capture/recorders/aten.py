"""Operator graphs on a CPU: the faults of graph capture without a GPU.

Every ATen operator of the forward pass is recorded with the tensors it read and wrote, and a replay runs the same
operators on the same storages. What a CUDA graph does wrong then goes wrong here too: an input that was replaced
instead of refreshed is not seen, a number that Python knew at capture stays as it was, and a read-back to the host is
refused. What it says about a GPU's kernels, its memory or its time is nothing: such a report is "emulated".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from engine.capture.recorders.base import CaptureRefused, Recorder, Run, cutting
from engine.capture.report import Claim

_HOST_READS = {
    torch.Tensor.tolist: "Tensor.tolist()",
    torch.Tensor.numpy: "Tensor.numpy()",
    torch.Tensor.cpu: "Tensor.cpu()",
    torch.Tensor.item: "Tensor.item()",
}
_HOST_WRITES = {torch.tensor: "torch.tensor(...)", torch.as_tensor: "torch.as_tensor(...)"}
_ALLOCATIONS = {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided"}
_MASK_INDEX = {"aten::index", "aten::index_put", "aten::index_put_"}


@dataclass(slots=True)
class Operator:
    """One recorded operator: ``writes`` are the recorded results that a replay fills again."""

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    writes: Sequence[Tensor]

    def run(self) -> None:
        result = self.function(*self.args, **self.kwargs)
        if self.writes:
            for recorded, fresh in zip(self.writes, _tensors(result), strict=True):
                recorded.copy_(fresh)


@dataclass(slots=True)
class Eager:
    """A cut: run on whatever the backend's metadata say now, into the tensor that the next segment reads."""

    function: Run
    result: Tensor

    def run(self) -> None:
        self.result.copy_(self.function())


@dataclass(slots=True)
class OperatorGraph:
    """The recorded operators of one forward pass."""

    steps: list[Operator | Eager] = field(default_factory=list)
    result: Tensor | None = None
    bytes: int = 0
    operators: int | None = 0
    segments: int = 1

    def replay(self) -> Tensor:
        if self.result is None:
            raise CaptureRefused("The graph was never recorded to its end.")
        for step in self.steps:
            step.run()
        return self.result


class AtenRecorder(Recorder):
    """Records ATen operators."""

    name: ClassVar[str] = "aten"
    claim: ClassVar[Claim] = "emulated"

    def synchronize(self) -> None:
        """Nothing to wait for: operators have run when they return."""

    def record(self, run: Run, *, breaks: bool) -> OperatorGraph:
        graph = OperatorGraph()
        tape = _Tape(graph)

        def cut(eager: Run) -> Tensor:
            with tape.paused():
                result = eager().clone()
            graph.steps.append(Eager(eager, result))
            graph.segments += 1
            return result

        with _HostGuard(tape), tape:
            if breaks:
                with cutting(cut):
                    result = run()
            else:
                result = run()
        graph.result = result
        graph.bytes = tape.held_bytes()
        graph.operators = sum(isinstance(step, Operator) for step in graph.steps)
        return graph


class _Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves the mode's hooks untyped
    """Writes every operator down while running it."""

    def __init__(self, graph: OperatorGraph) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.graph = graph
        self.recording = True
        self._storages: dict[int, int] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and torch would import its compiler, over a second, to step around it."""
        return False

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.recording = False
        try:
            yield
        finally:
            self.recording = True

    def held_bytes(self) -> int:
        """Bytes of the storages that operators of the graph allocated."""
        return sum(self._storages.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.recording:
            return func(*args, **kwargs)
        _refuse_host_dependence(func, args)
        result = func(*args, **kwargs)
        if func.is_view:
            return result
        written = [] if func._schema.is_mutable else _tensors(result)
        for tensor in written:
            storage = tensor.untyped_storage()
            self._storages[storage.data_ptr()] = storage.nbytes()
        if func._schema.name not in _ALLOCATIONS:
            self.graph.steps.append(Operator(func, args, kwargs, written))
        return result


class _HostGuard(TorchFunctionMode):
    """Refuses what never reaches an operator on a CPU, but is a synchronising copy on a GPU."""

    def __init__(self, tape: _Tape) -> None:
        super().__init__()
        self._tape = tape

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._tape.recording:
            if func in _HOST_READS:
                raise CaptureRefused(
                    f"{_HOST_READS[func]} during capture: a graph cannot wait for a value to reach the host."
                )
            if func in _HOST_WRITES:
                raise CaptureRefused(
                    f"{_HOST_WRITES[func]} during capture: the host's value would be copied once and never again. "
                    "Fill a static buffer before the graph runs."
                )
        return func(*args, **(kwargs or {}))


def _refuse_host_dependence(func: Any, args: Sequence[Any]) -> None:
    name = func._schema.name
    if name in _MASK_INDEX:
        indices = [i for i in args[1] if isinstance(i, Tensor)]
        if not any(i.dtype in (torch.bool, torch.uint8) for i in indices):
            return
        if name != "aten::index" and args[2].numel() == 1:
            return  # a masked fill: no shape depends on the mask
        raise CaptureRefused(f"{name} with a mask during capture: the result's shape depends on the mask's values.")
    if torch.Tag.data_dependent_output in func.tags:
        raise CaptureRefused(f"{name} during capture: it hands a value to the host, which a graph cannot wait for.")
    if torch.Tag.dynamic_output_shape in func.tags:
        raise CaptureRefused(f"{name} during capture: the result's shape depends on values.")


def _tensors(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [item for item in result if isinstance(item, Tensor)]
    return []
