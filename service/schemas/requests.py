"""Requests. Their own fields are checked here; what is the engine's language inside them is passed on as it is."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import WithJsonSchema


class Strict(BaseModel):
    """No type is bent, no unknown field is passed over."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


AnyObject = Annotated[Any, WithJsonSchema({"type": "object", "additionalProperties": True})]
"""An object that the engine's or the domain's own reader checks."""

GraphConfig = Annotated[
    Any, WithJsonSchema({"anyOf": [{"type": "object", "additionalProperties": True}, {"type": "string"}]})
]
Arguments = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": "object", "additionalProperties": True},
            ]
        }
    ),
]
Sizes = Annotated[
    Any,
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}),
]


Launch = Annotated[Any, WithJsonSchema({"$ref": "#/components/schemas/ValidationRequest"})]
"""Read one by one, so that a wrong one does not spoil the others."""

MOST_IN_BATCH = 1000


class ModelField(Strict):
    """Exactly one of `id`, `config` and `path`."""

    id: str | None = Field(
        None, description="An organisation/name of the model hub.", examples=["Qwen/Qwen3-Next-80B-A3B-Instruct"]
    )
    revision: str | None = Field(None, description="Branch, tag or commit of `id`.", examples=["main"])
    config: AnyObject = Field(None, description="The model's config.json itself.", examples=[{"model_type": "llama"}])
    path: str | None = Field(
        None, description="A folder or config.json below the allowed roots.", examples=["/models/llama"]
    )


class EngineField(Strict):
    """The serving engine."""

    name: str = Field("sglang", examples=["sglang"])
    version: str | None = Field(None, description="The release; the newest known by default.", examples=["0.5.23"])


class HardwareField(Strict):
    """The node."""

    gpu: str | None = Field(None, description="A name of /v1/gpus; H200 by default.", examples=["H200"])
    count: int | None = Field(None, description="GPUs of the node; 8 by default.", examples=[8])


class ValidationRequest(Strict):
    """One launch, in any of the forms that people have it in."""

    model: ModelField | None = Field(
        None,
        description="May be left out where launch_command names the model.",
        examples=[{"id": "Qwen/Qwen3-Next-80B-A3B-Instruct"}],
    )
    engine: EngineField | None = Field(None, examples=[{"name": "sglang", "version": "0.5.23"}])
    hardware: HardwareField | None = Field(None, examples=[{"gpu": "H200", "count": 8}])
    cuda_graph_config: GraphConfig = Field(
        None,
        description="The value of --cuda-graph-config, as an object or as text; its content is the engine's language.",
        examples=[{"prefill": {"backend": "full"}}],
    )
    arguments: Arguments = Field(
        None,
        description="The engine's command line, as a list of words or an object of options.",
        examples=[["--tp-size", "8"]],
    )
    launch_command: str | None = Field(
        None,
        description="A whole shell line that launches the engine.",
        examples=["python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct"],
    )
    environment: AnyObject = Field(None, description="Environment variables of the launch.", examples=[{}])
    defaults: AnyObject = Field(
        None,
        description="What the platform would like where the operator said nothing; of the shape of cuda_graph_config.",
        examples=[{"prefill": {"backend": "full"}}],
    )


class BatchRequest(Strict):
    """Launches, each as ``POST /v1/validations`` takes it."""

    validations: list[Launch] = Field(
        min_length=1,
        max_length=MOST_IN_BATCH,
        description=f"1 to {MOST_IN_BATCH} launches. Those that cannot be answered are problems in their places.",
        examples=[[{"model": {"id": "Qwen/Qwen3-Next-80B-A3B-Instruct"}}]],
    )


class ComparisonRequest(ValidationRequest):
    """A launch, written for the first of the releases; `engine.version` is not looked at."""

    releases: list[str] = Field(
        description="Two releases or more, in the order of the upgrade.", examples=[["0.5.20", "0.5.23"]]
    )


class CaptureField(Strict):
    """How the capture is made. Values outside their bounds are refused with the bounds."""

    phases: Annotated[Any, WithJsonSchema({"type": "array", "items": {"enum": ["prefill", "decode"]}})] = Field(
        None, description="Both by default.", examples=[["prefill", "decode"]]
    )
    allocation: str | None = Field(
        None,
        description='"decode-owned" (the engine\'s order, the default) or "per-phase".',
        examples=["decode-owned"],
    )
    sizes: Sizes = Field(None, description="How many of the plan's sizes, or the sizes themselves.", examples=[3])
    device: str | None = Field(None, description="auto (default), cpu or cuda.", examples=["auto"])
    memory_mib: int | None = Field(
        None,
        description="MiB that the capture may take; with device cuda, what the kept dimensions must fit in.",
        examples=[2048],
    )
    timeout_s: Annotated[Any, WithJsonSchema({"type": "number"})] = Field(
        None, description="Seconds from process start to report.", examples=[120]
    )
    layers: int | None = Field(None, description="Layers of the scaled model.", examples=[4])
    engine: str | None = Field(
        None,
        description='"reference" (the default) or "sglang": the engine installed on a GPU worker, with dummy weights.',
        examples=["reference"],
    )


class CaptureRequest(ValidationRequest):
    """A launch, and how its graphs are to be captured."""

    capture: CaptureField | None = Field(None, examples=[{"phases": ["prefill"], "sizes": 2}])
    on_rejected: str = Field(
        "refuse",
        pattern="^(refuse|prove)$",
        description='"refuse": a rejected launch answers 409. "prove": it is captured all the same.',
        examples=["prove"],
    )
