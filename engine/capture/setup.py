"""The capture order: the prefill runner is built, and captures, before the decode runner is built. Then verification.

After SGLang 0.5.23, model_executor/model_runner_components/cuda_graph_setup.py. Each runner captures in its
constructor; under decode-owned allocation the static tables of a stateful attention backend come into being with the
decode runner, too late for a full prefill graph.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from engine.capture.attention.full import FullAttentionBackend
from engine.capture.attention.guard import GraphStateError
from engine.capture.attention.linear import LinearAttentionBackend
from engine.capture.estimate import Estimate
from engine.capture.job import CPU_MOST_REQUESTS, CaptureJob, PhasePlan, choose_sizes
from engine.capture.recorders.aten import AtenRecorder
from engine.capture.recorders.base import Recorder
from engine.capture.report import CaptureFailure, GraphReport, PhaseOutcome, PhaseReport
from engine.capture.runners.base import BACKENDS, CudaGraphRunner, Emit
from engine.capture.runners.decode import DecodeCudaGraphRunner
from engine.capture.runners.estimating import estimate
from engine.capture.runners.model_runner import ModelRunner
from engine.capture.runners.prefill import PrefillCudaGraphRunner
from engine.capture.runners.scenarios import LONGEST_PREFIX
from engine.capture.runners.verify import Listener, Verified, matches, verify
from engine.capture.shape import ModelShape
from engine.launch import Phase

CAPTURE_ORDER: tuple[Phase, ...] = ("prefill", "decode")

SMALLEST_CONTEXT = 32
"""Tokens of context that every request of the scaled model can have, at least."""

SPARE_REQUESTS = 2
"""Requests beyond the largest graph: their state must not be touched either."""

Keep = Callable[[Phase, PhaseReport], None]


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes that a capture is put together from."""

    full_backend: type[FullAttentionBackend] = FullAttentionBackend
    linear_backend: type[LinearAttentionBackend] = LinearAttentionBackend
    prefill_runner: type[PrefillCudaGraphRunner] = PrefillCudaGraphRunner
    decode_runner: type[DecodeCudaGraphRunner] = DecodeCudaGraphRunner


class CaptureSetup:
    """One capture, phase by phase. ``keep(phase, report)`` gets a phase's report each time it becomes more certain."""

    def __init__(
        self,
        job: CaptureJob,
        device: torch.device,
        *,
        emit: Emit,
        keep: Keep,
        parts: Parts | None = None,
    ) -> None:
        self.job = job
        self.device = device
        self.dtype = dtype_for(job.shape, device)
        self.recorder = _recorder(device)
        self._emit = emit
        self._keep = keep
        self._parts = parts or Parts()
        self._sizes = {plan.phase: choose_sizes(plan, job.options, on_cpu=device.type == "cpu") for plan in job.plans}
        self.runners: dict[Phase, CudaGraphRunner] = {}
        self._graphs: dict[Phase, tuple[GraphReport, ...]] = {}
        self.model_runner = ModelRunner(
            job.shape,
            seed=job.seed,
            device=device,
            dtype=self.dtype,
            allocation=job.options.allocation,
            max_requests=self._most_requests() + SPARE_REQUESTS,
            max_context=self._context(),
            page_size=job.page_size,
            full_backend=self._parts.full_backend,
            linear_backend=self._parts.linear_backend,
        )
        emit("model.built", layers=len(job.shape.layer_kinds))

    def run(self) -> None:
        """Capture both phases in the engine's order, then replay and compare every graph."""
        for phase in CAPTURE_ORDER:
            self._capture(phase)
        if self.runners:
            self._verify()

    def _capture(self, phase: Phase) -> None:
        plan = self.job.plan(phase)
        if plan is None:
            return
        report = self._started(plan)
        if not plan.enabled:
            self._keep(phase, replace(report, outcome="skipped", note="The launch has no graph in this phase."))
            self._emit(f"{phase}.skipped")
            return
        if plan.backend not in BACKENDS:
            said = f"The capture worker knows the graph backends {', '.join(sorted(BACKENDS))}, not {plan.backend!r}."
            self._keep(phase, replace(report, error=CaptureFailure(type="UnknownBackend", message=said)))
            self._emit(f"{phase}.infrastructure")
            return
        try:
            self.runners[phase] = self._build(plan)
        except Exception as failure:  # every way in which a capture fails is a result, not a fault of the worker
            outcome = outcome_of(failure)
            self._keep(phase, replace(report, outcome=outcome, error=described(failure)))
            self._emit(f"{phase}.{outcome}", message=str(failure)[:500])

    def _build(self, plan: PhasePlan) -> CudaGraphRunner:
        sizes: Sequence[int] = self._sizes[plan.phase]
        if plan.phase == "decode":
            return self._parts.decode_runner(
                self.model_runner, backend=plan.backend, sizes=sizes, recorder=self.recorder, emit=self._emit
            )
        return self._parts.prefill_runner(
            self.model_runner,
            backend=plan.backend,
            sizes=sizes,
            max_requests=self._slots(plan),
            recorder=self.recorder,
            emit=self._emit,
        )

    def _verify(self) -> None:
        """All graphs of both phases together: one replays after the other, whatever its phase and size."""
        for phase in self.runners:
            self._emit(f"{phase}.verify.begin")
        counted = dict.fromkeys(self.runners, 0)

        def done(phase: Phase, graph: GraphReport) -> None:
            counted[phase] += 1
            far = {"max_rel": graph.max_rel, "state_rel": graph.state_rel}
            many = {"n": counted[phase], "of": len(self.runners[phase].sizes)}
            self._emit(f"{phase}.verify.size", size=graph.size, **many, **far)

        listener = Listener(done, lambda n, of: self._emit("verify.turn", n=n, of=of))
        for phase, verified in verify(
            self.runners, seed=self.job.seed, replays=self.job.replays, listener=listener
        ).items():
            self._conclude(phase, verified)
            self._graphs[phase] = verified.graphs

    def estimate(self) -> Estimate | None:
        """What the captured graphs say of the whole model; None without any, or where the job does not describe it."""
        if self.job.whole is None or not self._graphs:
            return None
        try:
            return estimate(self.job.whole, self.runners, self._graphs, seed=self.job.seed)
        except RuntimeError as failure:  # out of memory, most likely; what was captured stands without it
            self._emit("estimate.failed", message=str(failure)[:500])
            return None

    def _conclude(self, phase: Phase, verified: Verified) -> None:
        plan, failure = self.job.plan(phase), verified.failure
        assert plan is not None  # noqa: S101 - only planned phases were captured
        report = replace(self._started(plan), graphs=verified.graphs)
        if failure is not None:
            self._keep(phase, replace(report, outcome=outcome_of(failure), error=described(failure)))
            self._emit(f"{phase}.verify.failed", message=str(failure)[:500])
            return
        good = all(matches(graph) for graph in report.graphs)
        self._keep(phase, replace(report, outcome="ok" if good else "mismatch"))
        self._emit(f"{phase}.verify.end", ok=good)

    def _started(self, plan: PhasePlan) -> PhaseReport:
        runs_whole = plan.backend == "full"
        spans = "the layers, without the head" if plan.phase == "prefill" else "the whole forward pass"
        cut = "segments between the mixing layers, which run eagerly; nothing is compiled"
        return PhaseReport(
            outcome="infrastructure",
            backend=plan.backend,
            recorded_as=(spans if runs_whole else f"{spans}, in {cut}") if plan.enabled else "",
            planned=plan.sizes,
            sizes=self._sizes[plan.phase] if plan.enabled else (),
        )

    def _most_requests(self) -> int:
        prefill = self.job.plan("prefill")
        return max(1, *self._sizes.get("decode", (1,)), self._slots(prefill) if prefill else 1)

    def _context(self) -> int:
        """Tokens a request, in whole pages: the largest prefill after the longest prefix."""
        tokens = max(SMALLEST_CONTEXT, max(self._sizes.get("prefill", (0,))) + LONGEST_PREFIX)
        return -(-tokens // self.job.page_size) * self.job.page_size

    def _slots(self, plan: PhasePlan) -> int:
        return min(plan.max_requests, CPU_MOST_REQUESTS) if self.device.type == "cpu" else plan.max_requests


def dtype_for(shape: ModelShape, device: torch.device) -> torch.dtype:
    """bfloat16 on a GPU, as serving has it, but for models with experts: where padding changes the last bit of a hidden
    state in 16 bits, a token near a tie chooses other experts, and what differs then is not the replay."""
    return torch.bfloat16 if device.type == "cuda" and not shape.num_experts else torch.float32


def outcome_of(failure: BaseException) -> PhaseOutcome:
    """What a failure during capture or replay means."""
    if isinstance(failure, GraphStateError):
        return "guard_refused"
    allocator = isinstance(failure, RuntimeError) and (
        "can't allocate memory" in str(failure) or "not enough memory" in str(failure)
    )
    if isinstance(failure, (torch.OutOfMemoryError, MemoryError)) or allocator:
        return "oom"
    return "capture_failed"


def described(failure: BaseException) -> CaptureFailure:
    """A failure as it goes into the report. The guard's is a RuntimeError to everyone outside this process."""
    return CaptureFailure(
        type="RuntimeError" if isinstance(failure, GraphStateError) else type(failure).__name__,
        message=str(failure),
        traceback="".join(traceback.format_exception(failure)[-12:])[-4000:],
    )


def _recorder(device: torch.device) -> Recorder:
    if device.type == "cuda":
        from engine.capture.recorders.cuda import CudaGraphRecorder  # only where there is a GPU

        return CudaGraphRecorder(device)
    return AtenRecorder(device)
