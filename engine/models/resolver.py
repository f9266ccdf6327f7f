"""A reference to a model becomes its facts: inline config, local folder, hub, or the packaged catalogue."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import HubRateLimited, HubUnavailable, InvalidLaunch, ModelError
from engine.launch import ModelRef
from engine.models import catalogue
from engine.models.facts import ModelFacts
from engine.models.flights import Flights, TooLate
from engine.models.hub_breaker import HubSlow
from engine.models.hub_lookup import FOREVER, HubLookup, OnCall
from engine.models.identifiers import check_id, check_revision
from engine.models.local import read_below
from engine.models.reading import facts_of
from engine.models.settings import ModelSettings

__all__ = ["ModelResolver", "ModelSettings"]

_KEPT = 512
_INLINES = 256
_LONGEST_INLINE = 65_536
_HURRIED = 32
_STILL_S = 1.0
"""What is at hand holds for this long at least."""

_Key = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is known of one id, facts or an error, and until when (monotonic seconds)."""

    facts: ModelFacts | None
    error: ModelError | None
    until: float


class ModelResolver:
    """Resolves references by its settings. Safe to share between threads; the same question is asked once.

    For an id without a revision the catalogue answers where it knows the id (``prefer="catalogue"``), else the hub,
    and where the hub cannot be asked, what was kept of an earlier answer, then the catalogue. The facts say so in
    ``source`` and ``notes``. An id with a revision is never answered from the catalogue.
    """

    def __init__(self, settings: ModelSettings | None = None, on_call: OnCall | None = None) -> None:
        self.settings = settings or ModelSettings()
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._flights: Flights[_Key, ModelFacts] = Flights(_HURRIED)
        self._hub = HubLookup(self.settings, on_call)
        self._inlines: OrderedDict[str, ModelFacts] = OrderedDict()

    def hub_status(self) -> dict[str, Any]:
        """``state`` (closed: the hub is asked; open: it is left alone; half-open; offline), for how long it is still
        left alone, and what became of the questions so far: ``calls`` over the network, ``answers`` without it."""
        return self._hub.status()

    def prepare(self) -> None:
        """Load what asking the hub takes, where it may be asked: for services, whose first question should be quick."""
        if not self.settings.offline:
            from engine.models.hub import prepare  # for those who ask for it alone

            prepare()

    def resolve(self, ref: ModelRef, *, wait_s: float | None = None) -> ModelFacts:
        """The facts of the model.

        With ``wait_s`` the answer comes within so many seconds: where the hub takes longer, from what was kept or from
        the catalogue, else as an error; the question to the hub goes on, and the next one finds its answer.

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
        return self._by_id((model_id, revision), wait_s)

    def at_hand(self, ref: ModelRef) -> bool:
        """Whether :meth:`resolve`, called now, answers from memory: without the hub, a file or much work."""
        if ref.id is None or ref.path is not None or ref.config is not None:
            return False
        if ref.revision is None and self.settings.prefer == "catalogue" and catalogue.find(ref.id) is not None:
            return True
        with self._lock:
            entry = self._entries.get((ref.id, ref.revision))
        return entry is not None and entry.facts is not None and time.monotonic() + _STILL_S < entry.until

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

    def _by_id(self, key: _Key, wait_s: float | None) -> ModelFacts:
        known = self._known(key)
        if known is not None:
            return known
        counts = self._hub.counts
        try:
            return self._flights.run(
                key, lambda: self._renewed(key), wait_s=wait_s, shared=lambda: counts.answer("shared")
            )
        except TooLate:
            counts.answer("late")
        except ModelError as error:
            raise copy.copy(error) from None  # one error may be raised in many threads
        entry = self._entries.get(key)
        if entry is not None and entry.facts is not None:
            return entry.facts
        late = HubSlow(
            f"The hub did not answer for {key[0]} within {wait_s:g} seconds.",
            remedy="Give the config itself or a local folder, or ask again when the hub answers.",
            field="model.id",
        )
        return self._hub.without_hub(*key, late)

    def _known(self, key: _Key) -> ModelFacts | None:
        """What holds at this moment; None where it must be looked up.

        Raises:
            ModelError: the look-up failed a moment ago.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or time.monotonic() >= entry.until:
                return None
            self._entries.move_to_end(key)
        if entry.facts is not None:
            self._hub.counts.answer("memory")
            return entry.facts
        self._hub.counts.answer("negative")
        raise copy.copy(entry.error or HubUnavailable("The hub failed."))

    def _renewed(self, key: _Key) -> ModelFacts:
        """Look it up, and keep what comes of it."""
        known = self._known(key)  # another look-up may have ended just before this one began
        if known is not None:
            return known
        before = self._entries.get(key)
        try:
            facts, keep_s = self._hub.look_up(*key)
        except ModelError as error:
            until = time.monotonic() + self._hub.quiet_s(error)
            if before is not None and before.facts is not None and isinstance(error, HubUnavailable | HubRateLimited):
                self._hub.counts.answer("stale")
                self._keep(key, _Entry(before.facts, None, until))
                return before.facts  # it was right when the hub last answered
            self._keep(key, _Entry(None, copy.copy(error).with_traceback(None), until))
            raise
        self._keep(key, _Entry(facts, None, time.monotonic() + keep_s))
        if facts.revision is not None and facts.revision != key[1] and not facts.notes:
            self._keep((key[0], facts.revision), _Entry(facts, None, FOREVER))
        return facts

    def _keep(self, key: _Key, entry: _Entry) -> None:
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            while len(self._entries) > _KEPT:
                self._entries.popitem(last=False)
