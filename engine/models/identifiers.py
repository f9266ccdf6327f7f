"""Which strings are ids and revisions of a model hub."""

from __future__ import annotations

import re

from engine.errors import InvalidModelId

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_ID = re.compile(rf"{_PART}(?:/{_PART})?")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")
_LONGEST_ID = 96
_LONGEST_REVISION = 200
_REMEDY = 'Give an "organisation/name" as the hub shows it, such as "meta-llama/Llama-3.1-8B-Instruct".'


def check_id(model_id: str) -> str:
    """The id, if it has the form "organisation/name" (or "name", as the hub's oldest models).

    The rules are the hub's own: letters, digits, "-", "_" and ".", at most 96 characters, no ".." and no "--", and no
    part that begins or ends with "-" or ".".

    Raises:
        InvalidModelId: otherwise.
    """
    if not isinstance(model_id, str) or not model_id:
        raise _invalid("The model id is empty.")
    if len(model_id) > _LONGEST_ID:
        raise _invalid(f"The model id has {len(model_id)} characters; the hub's longest have {_LONGEST_ID}.")
    if not _ID.fullmatch(model_id) or ".." in model_id or "--" in model_id or model_id.endswith(".git"):
        raise _invalid(f"{model_id!r} is no id of the model hub.")
    return model_id


def check_revision(revision: str) -> str:
    """The revision, if it can be a branch, tag or commit.

    Raises:
        InvalidModelId: otherwise.
    """
    if (
        not isinstance(revision, str)
        or len(revision) > _LONGEST_REVISION
        or not _REVISION.fullmatch(revision)
        or ".." in revision
        or "//" in revision
    ):
        raise InvalidModelId(
            f"{str(revision)[:80]!r} is no revision.",
            remedy="Give a branch, a tag or a commit of the model's repository, or leave it out.",
            field="model.revision",
        )
    return revision


def _invalid(detail: str) -> InvalidModelId:
    return InvalidModelId(detail, remedy=_REMEDY, field="model.id")
