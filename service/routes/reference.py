"""What the answers are made of: models, rules, releases, GPUs."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from engine.guards import all_rules
from engine.hardware import all_gpus
from engine.launch import ModelRef
from engine.sglang.releases import known_releases
from service import jsontext
from service.conditional import tag_of, unchanging
from service.problem_types import NOT_FOUND
from service.problems import Problem
from service.routes._common import Nothing, problems
from service.schemas.answers import Answer, Items, ModelOut
from service.schemas.queries import ModelQuery
from service.wiring import Wired

router = APIRouter(prefix="/v1", tags=["reference"])


@router.get(
    "/models/{org}/{name}",
    summary="The facts of a model",
    responses={200: {"model": ModelOut}, **problems(403, 404, 422, 503)},
)
async def model(org: str, name: str, query: Annotated[ModelQuery, Query()], wired: Wired, request: Request) -> Response:
    """What its config.json says that bears on graphs, and where it was read."""
    facts = await wired.examining.run(wired.resolver.resolve, ModelRef(id=f"{org}/{name}", revision=query.revision))
    return unchanging(request, jsontext.dumps(facts.summary()))


@cache
def _rules() -> tuple[bytes, str]:
    return _tagged({"items": [rule.to_dict() for rule in all_rules()]})


@cache
def _releases() -> tuple[bytes, str]:
    known = known_releases()
    items = [{"engine": "sglang", "version": text, "newest": text == known[-1]} for text in known]
    return _tagged({"items": items})


@cache
def _gpus() -> tuple[bytes, str]:
    return _tagged({"items": [gpu.to_dict() for gpu in all_gpus()]})


def _tagged(value: object) -> tuple[bytes, str]:
    body = jsontext.dumps(value)
    return body, tag_of(body)


@router.get("/rules", summary="Every rule", responses={200: {"model": Items}, **problems(422)})
async def rules(_: Nothing, request: Request) -> Response:
    """With evidence and documentation."""
    body, tag = _rules()
    return unchanging(request, body, tag=tag)


@router.get("/rules/{id}", summary="One rule", responses={200: {"model": Answer}, **problems(404, 422)})
async def rule(id: str, _: Nothing, request: Request) -> Response:  # noqa: A002 - the name in the address
    """By its id or its slug."""
    found = next((rule for rule in all_rules() if id.lower() in (rule.id.lower(), rule.slug)), None)
    if found is None:
        known = ", ".join(rule.id for rule in all_rules())
        raise Problem(NOT_FOUND, f"No rule is named {jsontext.shown(id)}. Known: {known}.")
    return unchanging(request, jsontext.dumps(found.to_dict()))


@router.get("/releases", summary="Engine releases that are known", responses={200: {"model": Items}, **problems(422)})
async def releases(_: Nothing, request: Request) -> Response:
    """Oldest first; a newer one than all of them is answered as the newest."""
    body, tag = _releases()
    return unchanging(request, body, tag=tag)


@router.get("/gpus", summary="GPUs that are known", responses={200: {"model": Items}, **problems(422)})
async def gpus(_: Nothing, request: Request) -> Response:
    """By compute capability, then memory (MiB)."""
    body, tag = _gpus()
    return unchanging(request, body, tag=tag)
