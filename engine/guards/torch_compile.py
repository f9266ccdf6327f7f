"""torch.compile in decode graphs of expert models.

## What it does
Looks for `--enable-torch-compile` with decode graphs on a mixture-of-experts model or under attention data
parallelism, and for `--torchao-config` int8dq with decode graphs.

## Why it is bad
Compilation of the captured batches meets custom kernels of the expert layers and collectives of the groups that it
cannot trace: capture fails, or takes very long. Dynamic int8 activations read a scale on the host.

## What to do
Leave `--enable-torch-compile` out: the experts' kernels are tuned already. Use a static quantization.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import without
from engine.sglang.derived import attn_dp_enabled


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for compilation of experts or of attention groups, and for dynamic int8."""
    args = examined.args
    torchao = str(getattr(args, "torchao_config", None) or "")  # newer releases do not have it
    if not args.enable_torch_compile and "int8dq" not in torchao:
        return
    if examined.decode.backend == "disabled":
        return
    release, arguments = examined.predicted.release, examined.launch.arguments
    if args.enable_torch_compile and (examined.facts.num_experts or attn_dp_enabled(args)):
        what = "a mixture-of-experts model" if examined.facts.num_experts else "attention data parallelism"
        message = (
            f"--enable-torch-compile with {what}: reports show decode capture failing while SGLang compiles it "
            f"({examined.release})."
        )
        suggestion = without(arguments, release, "enable_torch_compile")
        yield Hit(finding=RULE.finding("warning", message, "Leave --enable-torch-compile out.", suggestion=suggestion))
    if "int8dq" in torchao:
        message = f"--torchao-config {torchao} quantizes activations dynamically, which decode graphs do not survive."
        suggestion = without(arguments, release, "torchao_config")
        yield Hit(finding=RULE.finding("warning", message, "Use a static quantization.", suggestion=suggestion))


RULE = Rule(
    id="GG702",
    slug="torch-compile-graphs",
    title="--enable-torch-compile with experts or attention data parallelism",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("QUANT_AND_KERNEL",),
    phase="decode",
    backend=None,
    severity="warning",
    confidence="likely",
    evidence=(
        report(7918, "torch.compile with experts fails in capture"),
        report(4968, "torch.compile under attention data parallelism"),
        report(2219, "torchao int8dq in decode graphs"),
        source(
            "0.5.23",
            "model_executor/runner/decode_cuda_graph_runner.py",
            "batches up to torch_compile_max_bs are compiled before they are captured",
        ),
    ),
    check=check,
)
