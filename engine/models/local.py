"""Config files on this machine: freely for the person at the command line, below allowed folders for the service."""

from __future__ import annotations

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from engine.errors import ConfigUnreadable, ModelNotFound, PathNotAllowed
from engine.models.facts import ModelFacts
from engine.models.parsing import MAX_CONFIG_BYTES, read_config, too_large
from engine.models.reading import facts_of

_KEPT = 1024
_Stamp = tuple[int, int, int, int]
_lock = threading.Lock()
_known: OrderedDict[tuple[str, str | None], tuple[_Stamp, ModelFacts]] = OrderedDict()


def read_local(
    path: Path, *, limit: int = MAX_CONFIG_BYTES, links: bool = True, model_id: str | None = None
) -> ModelFacts:
    """The facts of a folder with a config.json, or of such a file itself, wherever it lies.

    No root is checked: for paths that the caller chose, not for those of a request. What was read is kept until the
    file changes, so that the same file gives the same object. Without ``links`` the file itself may not be one.
    ``model_id`` is what the facts call the model; by default the name of the folder or file.

    Raises:
        ModelNotFound: no such file.
        ConfigTooLarge: more than ``limit`` bytes.
        ConfigUnreadable: no regular file, or no config.
    """
    name = os.fspath(path)
    try:
        if os.path.isdir(name):  # noqa: PTH112 - half the time of pathlib, and this is asked for every case of a batch
            name = os.path.join(name, "config.json")  # noqa: PTH118 - as above
        stamp = _stamp(os.stat(name))  # noqa: PTH116 - as above
    except (OSError, ValueError):
        raise _missing(name) from None
    key = (name, model_id)
    with _lock:
        known = _known.get(key)
        if known is not None and known[0] == stamp:
            _known.move_to_end(key)
            return known[1]
    stamp, data = _read(name, limit, os.O_RDONLY if links else os.O_RDONLY | os.O_NOFOLLOW)
    facts = facts_of(read_config(data, limit=limit), model_id=model_id or _id_of(name), source="local")
    with _lock:
        _known[key] = (stamp, facts)
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return facts


def read_below(path: str, roots: Sequence[Path], *, limit: int = MAX_CONFIG_BYTES) -> ModelFacts:
    """The facts of a local folder or config.json that a request names: only below one of the roots.

    A relative path is meant below a root. Links are followed first and judged by where they lead. The answer for a
    path outside the roots is the same whether or not something lies there.

    Raises:
        PathNotAllowed: outside every root, or no path at all.
        ModelNotFound: below a root, but not there.
        ConfigTooLarge: more than ``limit`` bytes.
        ConfigUnreadable: no regular file, or no config.
    """
    if not path or len(path) > 4096 or any(ord(character) < 32 or ord(character) == 127 for character in path):
        raise PathNotAllowed("The path is empty, too long or holds control characters.", field="model.path")
    if not roots:
        raise PathNotAllowed(
            "Local paths are switched off: no folder is allowed.",
            remedy="Set GRAPHGATE_MODEL_ROOTS to the folders that hold models, or give the config itself.",
            field="model.path",
        )
    real_roots = [os.path.realpath(root) for root in roots]
    missing: str | None = None
    for root, real_root in zip(roots, real_roots, strict=True):
        asked = os.path.normpath(os.path.join(root, path))  # noqa: PTH118 - normpath must see ".." before links do
        if not (_below(asked, os.path.normpath(root)) or _below(asked, real_root)):
            continue  # outside by its own words: the disk is not asked
        real = os.path.realpath(asked)
        if os.path.isdir(real):  # noqa: PTH112 - a string all along
            real = os.path.realpath(os.path.join(real, "config.json"))  # noqa: PTH118 - a string all along
        if not any(_below(real, allowed) for allowed in real_roots):
            continue
        if os.path.lexists(real):  # the first root that has it answers
            # No link is followed any more: "real" is none, unless it was swapped for one just now.
            return read_local(Path(real), limit=limit, links=False, model_id=_id_of(asked))
        missing = real
    if missing is not None:
        raise _missing(path)
    raise PathNotAllowed(
        "The path is outside the folders that may be read.",
        remedy="Give a path below one of the folders of GRAPHGATE_MODEL_ROOTS, or the config itself.",
        field="model.path",
    )


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root if root.endswith(os.sep) else root + os.sep)


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _read(name: str, limit: int, flags: int) -> tuple[_Stamp, bytes]:
    """What the file holds, and its stamp. Non-blocking, so that a pipe cannot hold the reader up."""
    try:
        descriptor = os.open(name, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        raise _missing(name) from None
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigUnreadable(
                "The path is no regular file.", remedy="Give a folder with a config.json, or the file."
            )
        if found.st_size > limit:
            raise too_large(found.st_size, limit)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise too_large(None, limit)
    return _stamp(found), data


def _id_of(name: str) -> str:
    """A readable name: of a config.json its folder, of another file itself; "org--name" is "org/name".

    In the hub library's cache the folder "models--org--name" says it.
    """
    path = Path(name)
    label = path.parent.name if path.name == "config.json" else path.name.removesuffix(".json")
    for part in path.parts:
        if part.startswith("models--"):
            label = part.removeprefix("models--")
    return label.replace("--", "/", 1) or "model"


def _missing(path: str) -> ModelNotFound:
    return ModelNotFound(
        f"There is no config.json at {path[:200]!r}.",
        remedy="Give a folder that holds a config.json, or the file itself.",
        field="model.path",
    )
