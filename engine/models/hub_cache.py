"""What the hub answered, kept on disk; and a look into the cache that huggingface_hub fills."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from engine.models.identifiers import check_id, check_revision
from engine.models.settings import ModelSettings

_MOST_FILES = 4096
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One config as it was kept. ``age_s`` is the time since the hub gave it; infinite where unknown."""

    data: bytes
    commit: str | None
    age_s: float


class HubCache:
    """Configs by endpoint, token, id and revision: what one token may read is not shown to another.

    A cache that cannot be read or written is as good as none: no error comes from it.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._folder = settings.cache_dir

    def get(self, model_id: str, revision: str | None) -> Kept | None:
        """What was kept of the model, however old."""
        if self._folder is None:
            return None
        try:
            head, _, data = self._path(self._folder, model_id, revision).read_bytes().partition(b"\n")
            stored = json.loads(head)
            if stored["format"] != _FORMAT or stored["id"] != model_id or stored["size"] != len(data):
                return None
            age = max(0.0, time.time() - float(stored["time"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return Kept(data=data, commit=stored.get("commit"), age_s=age)

    def put(self, model_id: str, revision: str | None, data: bytes, commit: str | None) -> None:
        """Keep it, whole or not at all."""
        if self._folder is None:
            return
        head = {"format": _FORMAT, "id": model_id, "commit": commit, "time": time.time(), "size": len(data)}
        path = self._path(self._folder, model_id, revision)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room(path.parent)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(json.dumps(head).encode() + b"\n" + data)
                Path(temporary).replace(path)
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise

    def _path(self, folder: Path, model_id: str, revision: str | None) -> Path:
        token = self._settings.token or ""
        key = "\0".join((self._settings.hub_endpoint, token, model_id.lower(), revision or ""))
        return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.config"

    def _make_room(self, folder: Path) -> None:
        files = list(folder.glob("*.config"))
        if len(files) < _MOST_FILES:
            return
        files.sort(key=lambda file: file.stat().st_mtime)
        for file in files[: len(files) - _MOST_FILES + _MOST_FILES // 8]:
            file.unlink(missing_ok=True)


def from_hub_library(model_id: str, revision: str | None, settings: ModelSettings) -> Kept | None:
    """The config.json that huggingface_hub has in its own cache, as ``snapshots/COMMIT/config.json``."""
    if settings.hub_cache is None:
        return None
    check_id(model_id)
    name = check_revision(revision) if revision else "main"
    folder = settings.hub_cache / ("models--" + model_id.replace("/", "--"))
    with contextlib.suppress(OSError, UnicodeDecodeError):
        reference = folder / "refs" / name
        commit = reference.read_text(encoding="ascii").strip() if reference.is_file() else name
        if not commit.isalnum():
            return None
        path = folder / "snapshots" / commit / "config.json"
        if path.is_file() and path.stat().st_size <= settings.max_config_bytes:
            return Kept(data=path.read_bytes(), commit=commit, age_s=float("inf"))
    return None
