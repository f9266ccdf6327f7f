"""A reference to a model becomes its facts: inline config, local folder, hub, or the packaged catalogue."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.errors import (
    ConfigUnreadable,
    HubRateLimited,
    HubUnavailable,
    InvalidLaunch,
    ModelAccessDenied,
    ModelError,
    ModelNotFound,
)
from engine.launch import ModelRef
from engine.models import catalogue
from engine.models.facts import ModelFacts
from engine.models.hub_gate import HubGate, HubUnreachable
from engine.models.identifiers import check_id, check_revision
from engine.models.local import read_below
from engine.models.parsing import read_config
from engine.models.reading import facts_of
from engine.models.settings import ModelSettings

if TYPE_CHECKING:
    from engine.models.hub import HubFile
    from engine.models.hub_cache import Kept

__all__ = ["ModelResolver", "ModelSettings"]

_KEPT = 512
_INLINES = 256
_LONGEST_INLINE = 65_536
_Key = tuple[str, str | None]


@dataclass(slots=True)
class _Entry:
    """What is known of one id: facts or an error, until a time. The lock lets one thread at a time ask the hub."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    facts: ModelFacts | None = None
    error: ModelError | None = None
    until: float = 0.0


class ModelResolver:
    """Resolves references by its settings. Safe to share between threads; the same question is asked once.

    For an id without a revision the catalogue answers where it knows the id (``prefer="catalogue"``), else the hub,
    and where the hub cannot be asked, what was kept of an earlier answer, then the catalogue. The facts say so in
    ``source`` and ``notes``. An id with a revision is never answered from the catalogue.
    """

    def __init__(self, settings: ModelSettings | None = None) -> None:
        self.settings = settings or ModelSettings()
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._gate = HubGate(self.settings.negative_cache_s)
        self._inlines: OrderedDict[str, ModelFacts] = OrderedDict()

    def resolve(self, ref: ModelRef) -> ModelFacts:
        """The facts of the model.

        Raises:
            InvalidLaunch: not exactly one of id, path and config.
            ModelError: one of its kinds, saying what to change.
        """
        if sum(given is not None for given in (ref.id, ref.path, ref.config)) != 1:
            raise InvalidLaunch(
                "The model is given as exactly one of id, path and config.",
                remedy="Leave only one of the three.",
                field="model",
            )
        if ref.config is not None:
            return self._inline(ref.config)
        if ref.path is not None:
            return read_below(ref.path, self.settings.allowed_roots, limit=self.settings.max_config_bytes)
        model_id = check_id(ref.id or "")
        revision = check_revision(ref.revision) if ref.revision is not None else None
        if revision is None and self.settings.prefer == "catalogue":
            found = catalogue.find(model_id)
            if found is not None:
                return found
        return self._by_id(model_id, revision)

    def _inline(self, config: Mapping[str, Any]) -> ModelFacts:
        """The same object for an equal config, so that what was derived from it before is found again."""
        try:
            key = json.dumps(config)
        except (TypeError, ValueError, RecursionError):
            key = ""  # no JSON: the reading says what is wrong with it
        with self._lock:
            known = self._inlines.get(key)
            if known is not None:
                self._inlines.move_to_end(key)
                return known
        facts = facts_of(config, source="inline")
        if 0 < len(key) <= _LONGEST_INLINE:
            with self._lock:
                self._inlines[key] = facts
                while len(self._inlines) > _INLINES:
                    self._inlines.popitem(last=False)
        return facts

    def _by_id(self, model_id: str, revision: str | None) -> ModelFacts:
        entry = self._entry((model_id, revision))
        facts = entry.facts
        if facts is not None and time.monotonic() < entry.until:
            return facts
        with entry.lock:
            if time.monotonic() < entry.until:
                if entry.facts is not None:
                    return entry.facts
                if entry.error is not None:
                    raise copy.copy(entry.error)
            try:
                facts, keep_s = self._look_up(model_id, revision)
            except ModelError as error:
                entry.until = time.monotonic() + self._quiet_s(error)
                if entry.facts is not None and isinstance(error, HubUnavailable | HubRateLimited):
                    return entry.facts  # it was right when the hub last answered
                entry.facts, entry.error = None, error.with_traceback(None)
                raise copy.copy(error) from None
            entry.facts, entry.error, entry.until = facts, None, time.monotonic() + keep_s
            return facts

    def _entry(self, key: _Key) -> _Entry:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
                while len(self._entries) > _KEPT:
                    self._entries.popitem(last=False)
            else:
                self._entries.move_to_end(key)
            return entry

    def _quiet_s(self, error: ModelError) -> float:
        """How long the hub is left alone after an error, in seconds."""
        asked = error.retry_after if isinstance(error, HubRateLimited) else None
        return max(self.settings.negative_cache_s, float(asked or 0))

    def _look_up(self, model_id: str, revision: str | None) -> tuple[ModelFacts, float]:
        """The facts, and for how many seconds they hold."""
        from engine.models.hub_cache import HubCache, Kept  # 10 ms to import, for ids outside the catalogue

        settings, cache = self.settings, HubCache(self.settings)
        kept = cache.get(model_id, revision)
        if kept is not None and (kept.commit is not None and kept.commit == revision):
            return self._read(model_id, kept), float("inf")
        if settings.offline:
            return self._without_hub(model_id, revision, kept, _offline(model_id)), settings.refresh_s
        if kept is not None and kept.age_s < settings.refresh_s:
            return self._read(model_id, kept), settings.refresh_s - kept.age_s
        try:
            file = self._fetch(model_id, revision)
        except (HubUnavailable, HubRateLimited) as error:
            return self._without_hub(model_id, revision, kept, error), self._quiet_s(error)
        except ModelAccessDenied as error:
            return self._without_hub(model_id, revision, None, error, library=False), settings.refresh_s
        except ModelNotFound as error:
            raise _with_near(error, model_id) from None
        facts = self._read(model_id, Kept(data=file.data, commit=file.commit, age_s=0.0))
        cache.put(model_id, revision, file.data, file.commit)
        pinned = file.commit is not None and file.commit == revision
        return facts, float("inf") if pinned else settings.refresh_s

    def _fetch(self, model_id: str, revision: str | None) -> HubFile:
        """Ask the hub, unless it gave no answer several times just now."""
        from engine.models.hub import fetch_config  # as in _look_up

        self._gate.check(model_id)
        try:
            file = fetch_config(model_id, revision, self.settings)
        except HubUnreachable:
            self._gate.silent()
            raise
        except ModelError:
            self._gate.answered()
            raise
        self._gate.answered()
        return file

    def _read(self, model_id: str, kept: Kept) -> ModelFacts:
        try:
            config = read_config(kept.data, limit=self.settings.max_config_bytes)
        except ConfigUnreadable as error:
            if not kept.data.lstrip()[:1] == b"{":
                raise HubUnavailable(
                    f"The hub answered with something else than a config.json for {model_id}: {error.detail}",
                    remedy="Check GRAPHGATE_HUB_ENDPOINT and the proxy between, or give the config itself.",
                    field="model.id",
                ) from None
            raise
        return facts_of(config, model_id=model_id, source="hub", revision=kept.commit)

    def _without_hub(
        self, model_id: str, revision: str | None, kept: Kept | None, error: ModelError, *, library: bool = True
    ) -> ModelFacts:
        """Facts from what was kept, or from the catalogue; else the error that kept the hub from answering."""
        from engine.models.hub_cache import from_hub_library  # as in _look_up

        if kept is None and library:
            kept = from_hub_library(model_id, revision, self.settings)
        if kept is not None:
            return catalogue.with_notes(
                self._read(model_id, kept), f"From an earlier answer of the hub: {error.detail}"
            )
        if revision is None:
            found = catalogue.find(model_id)
            if found is not None:
                return catalogue.with_notes(found, error.detail)
        raise _with_near(error, model_id)


def _offline(model_id: str) -> HubUnavailable:
    return HubUnavailable(
        f"{model_id} is not in the packaged catalogue, and the hub is not asked: offline mode is on.",
        remedy="Give the config itself or a local folder, or unset GRAPHGATE_OFFLINE and HF_HUB_OFFLINE.",
        field="model.id",
    )


def _with_near(error: ModelError, model_id: str) -> ModelError:
    """The error, naming models of the catalogue that look like the one asked for."""
    near = [name for name in catalogue.near(model_id) if name.lower() != model_id.lower()]
    if near:
        error.remedy = f"{error.remedy} The packaged catalogue has {', '.join(near)}.".strip()
    return error
