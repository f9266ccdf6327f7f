"""What an engine release does with a launch: parse, resolve step by step, report.

The prediction is the engine alone. Guards and policy come after it (:mod:`engine.guards`, :mod:`engine.policy`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from engine.errors import InvalidLaunch
from engine.hardware import Gpu
from engine.launch import PHASES, Launch, Phase
from engine.models.facts import ModelFacts
from engine.sglang import environ
from engine.sglang.derived import num_dp_ranks
from engine.sglang.engine_model import EngineModel
from engine.sglang.graph_config import check_defaults
from engine.sglang.loading import load_of
from engine.sglang.options import Parsed
from engine.sglang.platform import platform_of
from engine.sglang.releases import Release, release_named
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.retired import Retired, retired_in
from engine.sglang.steps.order import runs_of
from engine.verdict import Decision, EngineError, Prediction

REPORTED = (
    "device",
    "tp_size",
    "pp_size",
    "dp_size",
    "chunked_prefill_size",
    "max_running_requests",
    "max_total_tokens",
    "mem_fraction_static",
    "page_size",
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "disable_radix_cache",
    "disable_overlap_schedule",
    "speculative_algorithm",
    "speculative_num_draft_tokens",
    "enable_dp_attention",
    "moe_a2a_backend",
    "disaggregation_mode",
    "quantization",
    "enable_torch_compile",
    "disable_cuda_graph",
    "disable_cuda_graph_padding",
    "enable_mixed_chunk",
    "mamba_backend",
)
"""The resolved arguments that bear on graphs, reported by the engine's own names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """The prediction with everything behind it.

    ``resolution`` is None where the parser already refused; ``retired`` then holds the options that this release no
    longer has, with what to write instead.
    """

    prediction: Prediction
    ledger: tuple[Decision, ...]
    resolution: Resolution | None
    release: Release
    retired: tuple[Retired, ...] = ()


def predict(launch: Launch, facts: ModelFacts, gpu: Gpu) -> Predicted:
    """What the launch's release will do with it.

    Raises:
        UnknownRelease: the release is not covered.
        InvalidLaunch: the platform's defaults are no graph configuration, or the command line names another model or a
            configuration file.
    """
    release = release_named(launch.release)
    words = _without_model(launch.arguments, launch)
    defaults = check_defaults(launch.defaults, release.graph)
    try:
        parsed = release.options.parse(words, environ.choices(launch.environment))
    except Refusal as refusal:
        return _refused(refusal, None, release, (), retired=retired_in(words, release))
    _refuse_other_config(parsed)
    resolution = _resolution(release, parsed, launch, facts, gpu, defaults)
    try:
        for step, run in runs_of(release.version):
            resolution.step = step
            run(resolution)
    except (ArithmeticError, json.JSONDecodeError) as error:
        # The engine divides by the zero that the operator wrote, or reads his JSON, as the step does.
        same = Refusal(type(error).__name__, str(error))
        return _refused(same, resolution, release, _unexamined(parsed))
    except Refusal as refusal:
        return _refused(refusal, resolution, release, _unexamined(parsed))
    args = _reported(resolution)
    load, dropped = load_of(resolution)
    if dropped is not None:
        resolution.ledger.append(dropped)
    prediction = Prediction(
        outcome="resolved",
        graph={phase: resolution.graph[phase].frozen() for phase in PHASES},
        args=args,
        locked=tuple(sorted(resolution.locked)),
        load=load,
        unexamined=_unexamined(parsed),
        log=tuple(resolution.log),
    )
    return Predicted(prediction=prediction, ledger=tuple(resolution.ledger), resolution=resolution, release=release)


def _reported(r: Resolution) -> dict[str, Any]:
    """The resolved arguments by the release's own names; before 0.5.22 attention's width was ``dp_size`` too."""
    names, values_of = _reported_names(r.release.text)
    args = dict(zip(names, values_of(r.args.__dict__), strict=True))
    if not r.since(0, 5, 22):
        args["dp_size"] = num_dp_ranks(r.args)
    return args


@cache
def _reported_names(release: str) -> tuple[tuple[str, ...], Callable[[Mapping[str, Any]], tuple[Any, ...]]]:
    names = tuple(name for name in REPORTED if name in release_named(release).defaults)
    return names, itemgetter(*names)


def _resolution(
    release: Release, parsed: Parsed, launch: Launch, facts: ModelFacts, gpu: Gpu, defaults: Mapping[Phase, Any]
) -> Resolution:
    args = release.initial.copy()  # a copy of one dictionary is several times as fast as a merge
    args.update(parsed.values)
    args["model_path"] = launch.model.id or launch.model.path or facts.model_id or "model"
    resolution = Resolution(
        release=release,
        model=lambda r: EngineModel.of(facts, release, r.args, sm=platform_of(gpu).sm, environment=r.environment),
        hardware=gpu,
        args=args,
        given=parsed.given,
        environment=dict(launch.environment),
        platform_defaults=defaults,
    )
    resolution.log.extend(parsed.warnings)
    return resolution


def _without_model(words: Sequence[str], launch: Launch) -> list[str]:
    """The words, as long as they neither name a model nor point to a file of the operator's machine."""
    for word in words:
        if not word.startswith(("--model", "--config")):
            continue
        name = word.partition("=")[0]
        if name in ("--model-path", "--model"):
            raise InvalidLaunch(
                f"The arguments name a model ({name}).",
                remedy=f"The model of this launch is {launch.model.label}; leave {name} out of the arguments.",
                field="arguments",
            )
        if word == "--config":  # as one word with an equals sign the engine takes it too, and opens no file
            raise InvalidLaunch(
                "The arguments name a configuration file (--config), which cannot be read from here.",
                remedy='Send what it holds: an object {"tp-size": 8} is read as arguments too.',
                field="arguments",
            )
    return list(words)


def _refuse_other_config(parsed: Parsed) -> None:
    if parsed.values.get("decrypted_config_file"):
        raise InvalidLaunch(
            "--decrypted-config-file puts another configuration in the place of the model's, which is not known here.",
            remedy="Send that file as the model's config, and leave the option out.",
            field="arguments",
        )


def _refused(
    refusal: Refusal,
    resolution: Resolution | None,
    release: Release,
    unexamined: tuple[str, ...],
    retired: tuple[Retired, ...] = (),
) -> Predicted:
    prediction = Prediction(
        outcome="refused",
        error=EngineError(stage=refusal.stage, type=refusal.type, message=refusal.message),
        locked=tuple(sorted(resolution.locked)) if resolution else (),
        unexamined=unexamined,
        log=tuple(resolution.log) if resolution else (),
    )
    return Predicted(
        prediction=prediction,
        ledger=tuple(resolution.ledger) if resolution else (),
        resolution=resolution,
        release=release,
        retired=retired,
    )


@cache
def bearing() -> frozenset[str]:
    """The engine's arguments, by its own names, that some step reads."""
    rows: dict[str, Any] = json.loads((Path(__file__).parent / "bearing.json").read_text(encoding="utf-8"))
    return frozenset(rows["arguments"])


def _unexamined(parsed: Parsed) -> tuple[str, ...]:
    """The given arguments that no step reads, as options."""
    return tuple("--" + name.replace("_", "-") for name in sorted(parsed.given - bearing()))
