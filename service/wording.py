"""Field errors of the schema library in the words of this service, with what to write instead."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from service import jsontext
from service.problems import FieldError
from service.schemas import queries, requests

_ROOTS: Mapping[str, tuple[type[BaseModel], ...]] = {
    "body": (requests.CaptureRequest,),
    "query": (
        queries.ValidationsQuery,
        queries.CapturesQuery,
        queries.ValidateQuery,
        queries.ModelQuery,
        queries.EventsQuery,
    ),
}
_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list",
}
_KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def field_error(error: Mapping[str, Any], accepted: Sequence[str] = ()) -> FieldError:
    """One error of the schema library. ``accepted``: the names that a query takes."""
    place, *rest = error["loc"]
    path = tuple(rest)
    kind = error["type"]
    example = _example(_field(str(place), path))
    if kind == "extra_forbidden":
        names = list(accepted) if place == "query" else _names(path[:-1])
        return FieldError(path, f"There is no {_what(str(place))} {jsontext.shown(str(path[-1]))}.", _near(path, names))
    if kind == "missing":
        if not path:
            return FieldError((), "The body is empty.", 'Send a JSON object such as {"model": {"id": "org/name"}}.')
        return FieldError(path, "This is required.", example)
    if kind in _TYPES:
        given = _KINDS.get(type(error.get("input")), "something else")
        if not path:
            return FieldError((), f"The body must be an object, not {given}.", "")
        if path == ("model",) and isinstance(error.get("input"), str):
            example = f"Write {json.dumps({'id': error['input'][:100]})}."
        return FieldError(path, f"This must be {_TYPES[kind]}, not {given}.", example)
    if kind in ("literal_error", "string_pattern_mismatch"):
        expected = error["ctx"].get("expected") or error["ctx"]["pattern"].strip("^$()").replace("|", " or ")
        return FieldError(path, f"{jsontext.shown(str(error.get('input')))} is not taken here.", f"Write {expected}.")
    return FieldError(path, f"{error['msg']}.", example)


def _what(place: str) -> str:
    return "query parameter" if place == "query" else "field"


@cache
def _nested(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    info = model.model_fields.get(name)
    if info is None:
        return None
    candidates = [info.annotation, *getattr(info.annotation, "__args__", ())]
    return next((item for item in candidates if isinstance(item, type) and issubclass(item, BaseModel)), None)


def _model_at(path: tuple[Any, ...]) -> type[BaseModel] | None:
    model: type[BaseModel] | None = _ROOTS["body"][0]
    for part in path:
        model = _nested(model, str(part)) if model is not None else None
    return model


def _names(path: tuple[Any, ...]) -> list[str]:
    model = _model_at(path)
    return list(model.model_fields) if model is not None else []


def _field(place: str, path: tuple[Any, ...]) -> FieldInfo | None:
    if not path:
        return None
    if place == "query":
        roots = _ROOTS["query"]
        return next((root.model_fields[str(path[-1])] for root in roots if str(path[-1]) in root.model_fields), None)
    model = _model_at(path[:-1])
    return model.model_fields.get(str(path[-1])) if model is not None else None


def _example(field: FieldInfo | None) -> str:
    return f"Write {json.dumps(field.examples[0])}." if field is not None and field.examples else ""


def _near(path: tuple[Any, ...], names: Sequence[str]) -> str:
    given = str(path[-1])
    near = difflib.get_close_matches(given.lower()[:100], names, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]}?"
    elsewhere = [
        f"{outer}.{given}"
        for outer in requests.CaptureRequest.model_fields
        if len(path) == 1 and (inner := _nested(requests.CaptureRequest, outer)) and given in inner.model_fields
    ]
    if elsewhere:
        return f"Did you mean {elsewhere[0]}?"
    return f"Known here: {', '.join(names)}." if names else "Nothing may be given here."
